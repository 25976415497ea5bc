"""The config of a job: from the run folder if the run has started, composed from its overrides otherwise."""

from collections.abc import Sequence
from pathlib import Path

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig, OmegaConf

from cfn.config import Config, check
from cfn.launch.composed import with_agent, without_hydra
from cfn.runs.folder import Run
from cfn.runs.layout import Layout


def config_of_job(loader: ConfigLoader, master: DictConfig, overrides: Sequence[str]) -> Config:
    """Return the config that a job is going to run.

    Args:
        loader: Hydra's loader of configs.
        master: Config of the sweep.
        overrides: Overrides of the job, with its folder.
    """
    composed = loader.load_sweep_config(master, list(overrides))
    folder = Path(str(OmegaConf.select(composed, "hydra.sweep.subdir")))
    if Layout(folder).summary.exists():
        from cfn.training.resume import config_of

        asked = composed.hydra.sweeper.get("resume")
        return config_of(Run.open(folder), [] if asked is None else list(asked.trust))
    return check(*with_agent(without_hydra(composed), composed.hydra.runtime.choices))
