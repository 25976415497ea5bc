"""Composing configs as the command does."""

from hydra import compose, initialize_config_dir

from cfn.config import CONF, check
from cfn.launch.composed import with_agent
from cfn.launch.parts import choosing_parts


def composed(*overrides):
    """Compose and check the config that `cfn train` would run with these overrides; return it and Hydra's own part."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=choosing_parts(overrides, [CONF]), return_hydra_config=True)
    choices = config.hydra.runtime.choices
    hydra = config.hydra
    job = config.copy()
    job._set_flag("struct", False)
    del job["hydra"]
    return check(*with_agent(job, choices)), hydra
