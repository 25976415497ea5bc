"""Options that plugins register, and that this package replaces."""

from hydra.core.config_store import ConfigStore

from cfn.config import CONF
from cfn.launch.plugin_options import REPLACED, replace_options


def test_every_replaced_option_has_a_file():
    for group, name in REPLACED.items():
        assert (CONF / group / f"{name}.yaml").is_file()


def test_registered_options_are_removed_whatever_the_order_of_imports():
    """A plugin that is imported last registers its option last."""
    replace_options()
    store = ConfigStore.instance()
    for group, name in REPLACED.items():
        store.store(group=group, name=name, node={"_target_": "theirs"})
    replace_options()
    for group, name in REPLACED.items():
        parent, child = group.split("/")
        assert f"{name}.yaml" not in store.repo[parent][child]
