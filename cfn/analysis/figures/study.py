"""The report of a tuning study: its best values, how much each key matters, and a picture of all trials."""

import warnings
from pathlib import Path
from typing import Any

from cfn.analysis.markdown import markdown_table
from cfn.errors import UsageError
from cfn.runs.layout import SweepLayout

BEST = 5
"""Number of best trials in the table."""


def report(name: str, storage: str, files: SweepLayout) -> tuple[str, list[Path]]:
    """Write the report of a study into its folder.

    Args:
        name: Name of the study.
        storage: Address of its database.
        files: Paths of the sweep's files.

    Returns:
        The report as Markdown, and the paths of all files written.
    """
    import optuna  # an optional package

    study = optuna.load_study(study_name=name, storage=storage)
    complete = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    if not complete:
        raise UsageError(f"{files.folder} has no finished trial yet")
    largest_first = study.direction == optuna.study.StudyDirection.MAXIMIZE
    ranked = sorted(complete, key=lambda trial: trial.value or 0.0, reverse=largest_first)
    keys = list(ranked[0].params)
    rows = [[str(trial.number), f"{trial.value:.4g}", *map(_cell, trial.params.values())] for trial in ranked[:BEST]]
    failed = sum(trial.state == optuna.trial.TrialState.FAIL for trial in study.trials)
    text = f"{len(complete)} finished trials, {failed} failed; the best:\n\n"
    text += markdown_table(["trial", "objective", *keys], rows, names=1) + "\n"
    importance = _importance(study)
    if importance:
        text += "\nHow much each key matters (PED-ANOVA, shares of 1):\n\n"
        shares = [[key, f"{share:.2f}"] for key, share in importance.items()]
        text += markdown_table(["key", "importance"], shares, names=1) + "\n"
    path = files.folder / "study.md"
    path.write_text(text, encoding="utf-8")
    return text, [path, _draw_trials(study, files.folder / "study.png")]


def _importance(study: Any) -> dict[str, float]:
    """Return the share of each key in the differences between trials; empty if there are too few trials."""
    import optuna

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna calls this evaluator experimental; it needs no further package
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))
    except (ValueError, RuntimeError, ZeroDivisionError):
        return {}


def _draw_trials(study: Any, path: Path) -> Path:
    """Draw every trial as a line through its values (parallel coordinates)."""
    import matplotlib.pyplot as plt
    from optuna.visualization.matplotlib import plot_parallel_coordinate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plot_parallel_coordinate(study).set_title("Trials of the study")
        figure = plt.gcf()
        figure.set_size_inches(8, 4.5)
        figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
    return path


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
