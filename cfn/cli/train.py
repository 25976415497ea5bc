"""`cfn train`: Hydra composes the config and calls `job` once, or once per run of a sweep."""

import os
import sys
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from cfn import naming
from cfn.cli.arguments import parse_hydra
from cfn.cli.messages import describe
from cfn.config import CONF, check
from cfn.launch.composed import run_folder, with_agent
from cfn.launch.parts import choosing_parts
from cfn.launch.sweeper import Sweeper, report_failure
from cfn.runs.folder import Run, remove_if_empty, reset_peak_memory

Sweeper.describe = staticmethod(describe)


def run(arguments: list[str]) -> None:
    """Run `cfn train`."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them
    if any(argument.startswith("hydra/launcher=") for argument in arguments):
        # Parallel runs share the cores: idle threads of PyTorch must not spin on a core that another run could use. A
        # single run is faster if they do (50-60 against 38-40 small coin-flip updates per second on two cores).
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    OmegaConf.register_new_resolver("cfn_run_folder", run_folder, replace=True)
    options, arguments = parse_hydra(arguments)
    folders = [CONF, *([Path(options.config_dir)] if options.config_dir else [])]
    options.overrides, arguments = (choosing_parts(words, folders) for words in (options.overrides, arguments))
    if options.help:
        from cfn.cli.help import show  # reads the docstrings of classes that import PyTorch

        show(options.overrides, options.config_dir)
        return
    sys.argv = ["cfn", *arguments]
    failures: list[Exception] = []

    @hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
    def job(composed: DictConfig) -> None:
        try:
            train_one(composed)
        except Exception as error:
            if HydraConfig.get().mode == RunMode.RUN:
                failures.append(error)  # raised here, Hydra would print a line before ours
                return
            report_failure(HydraConfig.get().overrides.task, describe(error))
            raise  # the sweep continues and reports at its end that this run failed

    job()
    if failures:
        raise failures[0]


def train_one(composed: DictConfig) -> None:
    """Train one run from its composed config."""
    reset_peak_memory()
    context = HydraConfig.get()
    folder = Path(context.runtime.output_dir)
    overrides = list(context.overrides.task)
    try:
        composed, choices = with_agent(composed, context.runtime.choices)
        config = check(composed, choices)
        run = Run(
            folder=folder,
            env=naming.environment(config.env.name, config.env.keys),
            agent=config.agent.name,
            bonus=config.bonus.name,
            seed=config.seed,
            setting=naming.setting(choices, config.env.keys, overrides),
            config=OmegaConf.to_container(composed, resolve=True),  # type: ignore[arg-type]
        )
        from cfn.training.loop import Training  # PyTorch is slow to import, and help and completion do not need it

        training = Training(config)
        hydra_config: Any = OmegaConf.to_container(OmegaConf.create({"hydra": context}), enum_to_str=True)
        hydra_config["hydra"]["runtime"]["choices"] = choices
        run.claim(hydra_config, overrides)
    except BaseException:  # also Ctrl-C
        remove_if_empty(folder, Path(str(composed.outputs)).absolute())
        raise
    from cfn.tracking.pictures import Pictures  # matplotlib is slow to import

    with run.lock():
        training.run(run, Pictures)
