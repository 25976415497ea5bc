"""`cfn resume`: continue one run, or everything in a sweep that is not finished."""

from pathlib import Path

from cfn.cli.arguments import Parser, add_trust
from cfn.errors import UsageError
from cfn.runs.folder import as_typed
from cfn.runs.layout import Layout
from cfn.runs.sweeps import is_sweep, outputs_around


def run(arguments: list[str]) -> None:
    """Run `cfn resume`."""
    parser = Parser(
        "resume",
        "Continue a stopped or killed run exactly where its last checkpoint was written. With a sweep (its record "
        "outputs/sweeps/DATE-TIME.yaml, or a folder of runs), continue every run that is not finished, and start runs "
        "that were never started.",
    )
    parser.add_argument(
        "words", nargs="*", metavar="RUN|SWEEP|key=value", help="runs and sweeps to continue; new values of keys"
    )
    add_trust(parser)
    options = parser.parse_intermixed_args(arguments)
    overrides = [word for word in options.words if "=" in word and not _is_path(word)]
    paths = [Path(word) for word in options.words if word not in overrides]
    if not paths:
        parser.error("name a run folder, or the record of a sweep")
    of_hydra = [override for override in overrides if override.lstrip("+~").startswith(("hydra.", "hydra/"))]
    changes = [override for override in overrides if override not in of_hydra]
    if len(paths) == 1 and not of_hydra and _is_run(paths[0]):
        from cfn.tracking.pictures import Pictures  # slow to import, like PyTorch, and help needs neither
        from cfn.training.resume import resume

        resume(paths[0], changes, options.trust, Pictures)
        return
    resume_sweep(paths, of_hydra, changes, options.trust)


def _is_path(word: str) -> bool:
    """Return whether a word with = names a path: run folders end in seed=N, like an override."""
    key = word.partition("=")[0].lstrip("+~")
    return Path(word).exists() or ("/" in key and not key.startswith("hydra/"))


def resume_sweep(paths: list[Path], of_hydra: list[str], changes: list[str], trusted: list[str]) -> None:
    """Continue everything in sweeps and folders that is not finished, through Hydra and its launchers.

    Args:
        paths: Records of sweeps, run folders, or folders above runs.
        of_hydra: Overrides of Hydra, such as `hydra/launcher=slurm`.
        changes: New values of keys.
        trusted: Classes and modules outside this package that configs may name.
    """
    from cfn.cli.train import run as train
    from cfn.launch.planning import quoted
    from cfn.launch.resuming import read_records, study_command

    if changes:
        from cfn.training.resume import require_changeable  # imports PyTorch, which is slow

        require_changeable(changes)
    sweeps = list(filter(is_sweep, paths))
    named = [record for record in read_records(sweeps) if record.is_study]
    others = len(sweeps) < len(paths) or len(read_records(sweeps)) > 1  # a study's record and folder may both be named
    if named and (others or changes):
        shown = as_typed(named[0].files.folder)
        raise UsageError(f"{shown} is a study, which is continued alone and as it is: cfn resume {shown}")
    records = named or [record for record in read_records(paths) if not record.is_study]
    config_dirs = {record.config_dir for record in records} - {None}
    if len(config_dirs) > 1:
        raise UsageError("these sweeps have different folders of configs (--config-dir): resume them one by one")
    flags = [flag for folder in config_dirs for flag in ("--config-dir", str(folder))]
    if named:
        train([*flags, "-m", *study_command(named[0]), *of_hydra])
        return
    lists = {"paths": [str(path) for path in paths], "changes": changes, "trust": trusted}
    asked = ",".join(f"{name}:[{','.join(map(quoted, values))}]" for name, values in lists.items())
    outputs = _outputs(paths[0])
    train([*flags, "-m", f"hydra.sweep.dir={quoted(outputs)}", f"hydra.sweeper.resume={{{asked}}}", *of_hydra])


def _is_run(path: Path) -> bool:
    """Return whether to treat a path as one run: a run folder, or a path whose error resuming a run describes best."""
    files = Layout(path)
    return files.summary.exists() or files.metrics.exists() or files.config.exists() or not path.exists()


def _outputs(path: Path) -> Path:
    """Return the folder for the logs of the launched jobs, if no record of a sweep names one."""
    return outputs_around(path) if path.is_dir() else path.absolute().parent.parent
