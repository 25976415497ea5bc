"""The command `cfn`: one word chooses what to do. Errors come out as sentences, tracebacks only on request."""

import errno
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.errors import ConfigCompositionException, HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from cfn import __version__, naming
from cfn.arguments import Parser, positive
from cfn.config import CONF, QUOTE, check, unknown_key
from cfn.errors import UsageError
from cfn.run import Run, forget_peak_memory, remove_if_empty
from cfn.sweep import Sweeper, report

USAGE = """\
cfn: a laboratory for count-based exploration

  cfn train [key=value ...]    train an agent with a bonus in an environment (cfn train --help for the keys)
  cfn resume RUN               go on exactly where a stopped or killed run was (steps=N: on to more)
  cfn eval RUN                 let a trained agent play (--episodes N), and film it (--video)
  cfn plot PATH...             pictures and tables of runs (cfn plot --help)
  cfn runs [PATH]              a list of runs: how far each is, and how well it does
  cfn report PATH...           one page on runs, to read in a browser or to send
  cfn --version                the version

  cfn train                                       the default: a small visual gridworld
  cfn train env=gridworld bonus=count seed=1      the paper's values for that environment
  cfn train -m bonus=none,count seed=0,1,2        a sweep
  eval "$(cfn -sc install=bash)"                  completion of commands, groups and keys by the tab key"""


TRUST = "a class, or a module before the colon of env.id, that is not this package's and that the run may use"


def main() -> int:
    """Do what the command line says; the exit code tells whether it could be done."""
    logging.raiseExceptions = False  # a log that a full disk does not take is no reason for a traceback
    word, *arguments = sys.argv[1:] or [""]
    if word in ("-sc", "--shell-completion"):
        return complete(arguments)
    if word in ("-h", "--help", "help"):
        print(USAGE)
        return 0
    if word in ("-V", "--version"):
        print(f"cfn {__version__}")
        return 0
    if word not in COMMANDS:
        problem = f"cfn: there is no command {word!r}: choose from {', '.join(COMMANDS)} (cfn --help says more)"
        print(problem if word else USAGE, file=sys.stderr)
        return 2
    return COMMANDS[word](arguments)


def train(arguments: list[str]) -> int:
    """`cfn train`: Hydra composes the config and calls `job` once, or once for each run of a sweep."""
    raw = wants_traceback()
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra hands errors on, and they are told here
    if any(argument.startswith("hydra/launcher=") for argument in arguments):
        # Runs share the cores: PyTorch's waiting threads should not spin on a core that another run could use. A run by
        # itself is faster if they do (50-60 against 38-40 small coin-flip updates per second on two cores).
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    failures: list[Exception] = []
    # Flags may stand anywhere; Hydra's parser wants them before the overrides.
    sweep_flags = [a for a in arguments if a in ("-m", "--multirun")]
    sys.argv = ["cfn", *sweep_flags[:1], *(a for a in arguments if a not in sweep_flags)]

    @hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
    def job(composed: DictConfig) -> None:
        try:
            run_one(composed)
        except Exception as error:
            if HydraConfig.get().mode == RunMode.RUN:
                failures.append(error)  # raised, it would come out with a line of Hydra's before ours
                return
            report(HydraConfig.get().overrides.task, sentence(error))
            raise  # the other runs go on; the sweep tells in the end that one failed

    def run_jobs() -> None:
        job()
        if failures:
            raise failures[0]

    return told(run_jobs, raw)


def wants_traceback() -> bool:
    """Whether errors should come out as Python has them."""
    return os.environ.get("HYDRA_FULL_ERROR") == "1"


def told(call: Callable[[], None], raw: bool) -> int:
    """Make a call; the exit code and a sentence (if `raw`, a traceback) tell what went wrong, if anything did."""
    try:
        call()
    except KeyboardInterrupt as stopped:
        print("cfn: stopped", file=sys.stderr)
        return int(getattr(stopped, "code", 130))
    except BrokenPipeError:  # whoever read along (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if raw:
            raise
        print(f"cfn: {sentence(error)}", file=sys.stderr)
        return 1
    return 0


def resume(arguments: list[str]) -> int:
    """`cfn resume`: the run's own config, and its last checkpoint."""
    parser = Parser("resume", "Go on exactly where a run was stopped or killed.")
    parser.add_argument("run", type=Path, nargs="?", metavar="RUN", help="the run's folder")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as steps=500000, to go on to more")
    parser.add_argument("--trust", action="append", default=[], metavar="NAME", help=TRUST)
    options = parser.parse_intermixed_args(arguments)
    if options.run is None:
        parser.error("name the folder of a run")

    def go_on() -> None:
        from cfn.resume import resume  # PyTorch is slow to import, and help does without it

        resume(options.run, options.overrides, options.trust)

    return told(go_on, wants_traceback())


def run_one(composed: DictConfig) -> None:
    """One run, from the config that Hydra composed for it."""
    forget_peak_memory()
    context = HydraConfig.get()
    folder = Path(context.runtime.output_dir)
    choices, overrides = context.runtime.choices, list(context.overrides.task)
    try:
        config = check(composed, choices)
        env_id = config.env.keys.get("id")
        run = Run(
            folder=folder,
            env=naming.environment(config.env.name, env_id),
            agent=config.agent.name,
            bonus=config.bonus.name,
            seed=config.seed,
            setting=naming.setting(choices, env_id, overrides),
            config=OmegaConf.to_container(composed, resolve=True),  # type: ignore[arg-type]
        )
        from cfn.train import Training  # PyTorch is slow to import, and help and completion do without it

        training = Training(config)
        run.claim(OmegaConf.to_container(OmegaConf.create({"hydra": context}), enum_to_str=True), overrides)  # type: ignore[arg-type]
    except Exception:
        remove_if_empty(folder, Path(str(composed.outputs)).absolute())
        raise
    with run.lock():
        training.run(run)


def evaluate(arguments: list[str]) -> int:
    """`cfn eval`: a trained agent, watched."""
    parser = Parser("eval", "Let the agent of a run's last checkpoint play.")
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--episodes", type=positive, default=5, metavar="N", help="how many (5)")
    parser.add_argument("--video", action="store_true", help="film them: RUN/videos/step_XXXXXXXXX.mp4")
    parser.add_argument("--trust", action="append", default=[], metavar="NAME", help=TRUST)
    options = parser.parse_args(arguments)

    def play() -> None:
        from cfn.watch import watch  # PyTorch is slow to import, and help does without it

        watch(options.run, options.episodes, options.video, options.trust)

    return told(play, wants_traceback())


def reading(command: str) -> Callable[[list[str]], int]:
    """A command that only reads runs; what it needs is imported when it is called."""

    def run(arguments: list[str]) -> int:
        from cfn.analysis.commands import COMMANDS

        return told(lambda: COMMANDS[command](arguments, CONF), wants_traceback())

    return run


def complete(arguments: list[str]) -> int:
    """Shell completion: Hydra's, which knows groups and keys, with the command's word taken out of the line."""
    line = os.environ.get("COMP_LINE", "")
    words = line.split()
    typing_command = len(words) < 2 or (len(words) == 2 and not line.endswith(" "))
    if arguments and arguments[0].startswith("query=") and typing_command:
        prefix = words[1] if len(words) == 2 else ""
        print(" ".join(command for command in COMMANDS if command.startswith(prefix)))
        return 0
    if len(words) > 1:
        if words[1] not in COMMANDS:
            return 1
        if words[1] in ("plot", "runs", "report"):
            return 0  # they take folders, which the shell itself completes
        before, _, after = line.partition(f" {words[1]}")
        os.environ["COMP_LINE"] = before + after
    return train(["-sc", *arguments])


def sentence(error: BaseException) -> str:
    """What went wrong, for a person."""
    cause = error.__cause__
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, option = error.missing_cfg_file.rpartition("/")
        return f"{group}={option}: there is no such option; choose from {', '.join(sorted(error.options))}"
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and isinstance(error, ConfigCompositionException):
        known = cause.parent_node.keys() if isinstance(cause.parent_node, DictConfig) else []
        return unknown_key(str(cause.full_key), [key for key in known if key != "hydra"])
    if isinstance(cause, OmegaConfBaseException):
        return _without_details(cause)
    if isinstance(error, OverrideParseException):
        return f"{error.override}: this is not of the form key=value {QUOTE}"
    if isinstance(error, OmegaConfBaseException):
        return _without_details(error)
    if isinstance(error, HydraException):
        return " ".join(str(error).split())
    place = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        hint = ": choose a folder that can be written to with outputs=DIR" if place.name == "mkdir" else ""
        if error.errno == errno.ENOSPC:
            hint = ": what was written is kept; make room, and cfn resume RUN goes on from the last checkpoint"
        return f"{where}{error.strerror or error}{hint}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}"
    if isinstance(error, yaml.YAMLError | UnicodeError):
        return f"a config file cannot be read: {' '.join(str(error).split())}"
    if isinstance(error, ValueError) and "hydra" in Path(place.filename).parts:
        return " ".join(str(error).split())
    ours = Path(place.filename).is_relative_to(Path(__file__).parent)
    return (
        f"{type(error).__name__}: {' '.join(str(error).split())} ({Path(place.filename).name}, line {place.lineno}). "
        f"{'This is a bug: ' if ours else ''}HYDRA_FULL_ERROR=1 before the command shows where it comes from"
    )


def _without_details(error: OmegaConfBaseException) -> str:
    """OmegaConf's first line; the others are about objects of its own."""
    message = (str(error.msg or error).splitlines() or [type(error).__name__])[0]
    return f"{error.full_key}: {message}" if error.full_key else message


Sweeper.tell = sentence
COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "train": train,
    "resume": resume,
    "eval": evaluate,
    "plot": reading("plot"),
    "runs": reading("runs"),
    "report": reading("report"),
}
