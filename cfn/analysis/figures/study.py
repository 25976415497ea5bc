"""The report of a tuning study: its best trials, the importance of each key, and a picture of the finished trials."""

import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cfn.analysis.markdown import markdown_table
from cfn.errors import UsageError
from cfn.runs.layout import SweepLayout
from cfn.runs.sweeps import REPEATED

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
    states = Counter(trial.state for trial in study.trials if REPEATED not in trial.user_attrs)
    pruned, failed = states[optuna.trial.TrialState.PRUNED], states[optuna.trial.TrialState.FAIL]
    text = f"{len(complete)} finished trials, {pruned} pruned, {failed} failed; the best:\n\n"
    text += markdown_table(["trial", "objective", *keys], rows, names=1) + "\n"
    if len(complete) > 1 and _all_equal(complete):
        text += "\nAll of them have the same objective: it cannot tell which values are better.\n"
    elif len(importance := _importance(study)) > 1:  # the share of a single key is 1
        text += "\nHow much each key matters (PED-ANOVA, shares of 1):\n\n"
        shares = [[key, f"{share:.2f}"] for key, share in importance.items()]
        text += markdown_table(["key", "importance"], shares, names=1) + "\n"
    path = files.folder / "study.md"
    path.write_text(text, encoding="utf-8")
    return text, [path, draw_trials(study, complete, files.folder / "study.png")]


def _all_equal(trials: Sequence[Any]) -> bool:
    """Return whether all trials have the same objective."""
    return len({trial.value for trial in trials}) == 1


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


def draw_trials(study: Any, trials: Sequence[Any], path: Path) -> Path:
    """Draw every finished trial as a line through its values (parallel coordinates)."""
    import matplotlib.pyplot as plt
    import optuna
    from optuna.visualization.matplotlib import plot_parallel_coordinate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Optuna places the values of all keys within the range of the objective, which is empty if all are equal.
        equal = {"target": lambda trial: float(trial.number), "target_name": "Trial"} if _all_equal(trials) else {}
        plot_parallel_coordinate(study, **equal).set_title("Finished trials of the study")
        figure = plt.gcf()
        best_is_low = study.direction == optuna.study.StudyDirection.MINIMIZE
        for axes in figure.axes:
            for lines in axes.collections:  # Optuna's colours end in white; here the best trials are dark
                lines.set_cmap("viridis" if best_is_low else "viridis_r")
            if axes.get_label() == "<colorbar>":  # it would cover the last axis, and the first one has its numbers
                axes.remove()
        figure.set_size_inches(8, 4.5)
        figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
    return path


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
