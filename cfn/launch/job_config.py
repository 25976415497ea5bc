"""The config of a job: from the run folder if the run has started, composed from its overrides otherwise."""

from collections.abc import Sequence
from pathlib import Path

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig

from cfn.config import Config, check, parse_override
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
    folder = folder_of_job(overrides)
    if Layout(folder).summary.exists():
        from cfn.training.resume import config_of

        asked = composed.hydra.sweeper.get("resume")
        return config_of(Run.open(folder), [] if asked is None else list(asked.trust))
    return check(*with_agent(without_hydra(composed), composed.hydra.runtime.choices))


def folder_of_job(overrides: Sequence[str]) -> Path:
    """Return the run folder that the overrides of a job name."""
    values = dict(parse_override(override) for override in overrides if override.startswith("hydra.sweep.subdir="))
    return Path(values["hydra.sweep.subdir"])
