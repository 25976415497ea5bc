"""The figure of each experiment. For experiments of the paper it shows the quantities of the published figure."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from cfn.analysis.experiments import Members, members
from cfn.analysis.figures.common import save
from cfn.analysis.figures.family import family_figure, family_table
from cfn.analysis.figures.panels import Style
from cfn.analysis.figures.paper_counts import paper_ablation, paper_scatters
from cfn.analysis.figures.paper_returns import paper_buffer_sizes, paper_curves, paper_noise_bars, paper_task_grid
from cfn.analysis.figures.scale_search import search_figure, search_table
from cfn.errors import UsageError
from cfn.runs.record import load_runs

PUBLISHED = Style("mean", counted="arrivals")
"""Style of all published figures: mean and standard error over seeds; true counts are numbers of arrivals."""


class PaperFigure(NamedTuple):
    """The figure of an experiment.

    Attributes:
        draw: Draws the figure.
        style: Statistic, returns and counts of the published figure.
        table: Returns a table in Markdown that belongs to the figure; None: it has none.
    """

    draw: Callable[[Members, Style], Figure]
    style: Style = PUBLISHED
    table: Callable[[Members, Style], str] | None = None


class Drawn(NamedTuple):
    """A figure that was written.

    Attributes:
        path: Path of the picture.
        problems: Sentences on missing runs.
        table: Table in Markdown that was written beside it; empty if the figure has none.
    """

    path: Path
    problems: list[str]
    table: str


FIGURES = {
    "gridworld_counts": PaperFigure(partial(paper_scatters, without_goal=True)),
    "gridworld_ablation": PaperFigure(paper_ablation, PUBLISHED._replace(error="rmse", smoothing=6)),
    "gridworld_curves": PaperFigure(paper_curves),
    "gridworld_noise": PaperFigure(
        partial(paper_noise_bars, key="env.action_noise", x_label="probability that an action is replaced")
    ),
    # Which returns Figures 4 (right), 5 and 8 show is not published: evaluations, as in Figure 4 (left), unsmoothed.
    "d4rl": PaperFigure(partial(paper_task_grid, columns=3)),
    "fetch": PaperFigure(partial(paper_task_grid, columns=3), PUBLISHED._replace(score="train", smoothing=10)),
    "montezuma_curves": PaperFigure(paper_curves, PUBLISHED._replace(smoothing=3)),
    "montezuma_sticky": PaperFigure(
        partial(paper_noise_bars, key="env.sticky", x_label="probability that a frame repeats the action before"),
        PUBLISHED._replace(score="train"),
    ),
    "montezuma_buffer": PaperFigure(paper_buffer_sizes),
    "taxi_counts": PaperFigure(paper_scatters),
    "zero_flips": PaperFigure(paper_scatters),
    "family": PaperFigure(family_figure, Style("iqm"), table=family_table),
    "scale_search": PaperFigure(search_figure, table=search_table),
}
"""Figure of each experiment, by name of the experiment."""


def draw_experiment(name: str, folders: Sequence[Path], out: Path, conf: Path) -> Drawn | None:
    """Draw the figure of an experiment and write it to a file; a table that belongs to it is written beside it.

    Args:
        name: Name of the experiment.
        folders: Run folders.
        out: Path of the picture.
        conf: Folder of the configs.

    Returns:
        What was drawn; None if the experiment has no figure or no runs.
    """
    if name not in FIGURES or not folders:
        return None
    found, (draw, style, _) = members(load_runs(folders)[0], name, conf), FIGURES[name]
    path = save(draw(found, style), out)
    return Drawn(path, found.problems, write_table_of(name, found, style, out.with_suffix(".md")))


def write_table_of(name: str, found: Members, style: Style, out: Path) -> str:
    """Write the table that belongs to a figure.

    Args:
        name: Name of the experiment.
        found: Runs of the experiment.
        style: Statistic, returns and counts to show.
        out: Path of the table.

    Returns:
        The table; empty, and no file, if the figure has none.
    """
    table = FIGURES[name].table
    if table is None:
        return ""
    text = table(found, style)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error
    return text
