"""Options of Hydra's groups that plugins register, and that YAML files of this package replace."""

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins

REPLACED = {"hydra/launcher": "joblib", "hydra/sweeper": "optuna"}
"""Options with a YAML file of the same name in conf/, by group."""


def replace_options() -> None:
    """Remove the options that plugins have registered; Hydra refuses a YAML file that shares its name with one.

    To register another option in their place would not do: whose is used would depend on the order in which Hydra
    imports the plugins, and so on where they are installed.
    """
    Plugins.instance()  # loads the plugins, which register their options
    for group, name in REPLACED.items():
        parent, child = group.split("/")
        ConfigStore.instance().repo.get(parent, {}).get(child, {}).pop(f"{name}.yaml", None)
