"""`cfn report`: one HTML file on many runs. It needs no network.

Text from run folders is escaped and never becomes markup. The page's content security policy allows only the page's own
script, by its hash.
"""

import base64
import hashlib
import html
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from matplotlib import rc_context
from matplotlib.figure import Figure

from cfn.analysis.figures.panels import Style
from cfn.analysis.figures.several_runs import compare_over_time, compare_rooms
from cfn.analysis.grouping import Group
from cfn.analysis.report.slider import MAX_PANELS, palettes, slider_data
from cfn.analysis.tables import HEADER, cells, legend, rows
from cfn.runs.folder import current_state
from cfn.runs.reading import flat
from cfn.runs.record import Record

_HIDDEN_KEYS = ("seed", "suite", "hydra")
"""Config keys that are not listed: the seed differs between runs, the others only supply values of other keys."""


def page(groups: Sequence[Group], style: Style, problems: Sequence[str], folder: Path) -> str:
    """Return the HTML of the report.

    Args:
        groups: Settings to report.
        style: Statistic over seeds, and whether to draw each seed.
        problems: Sentences on runs that are left out.
        folder: Folder of the page. Links to files of runs are relative to it.
    """
    sliders: list[dict[str, Any]] = []
    tasks = list(dict.fromkeys(group.task for group in groups))
    number = sum(len(group.runs) for group in groups)
    title = f"{number} run{'s' * (number != 1)}: {', '.join(tasks[:4])}{' and more' * (len(tasks) > 4)}"
    sections: list[str] = []
    for i, task in enumerate(tasks):
        here = [group for group in groups if group.task == task]
        sections.append(f'<section><h2 id="task-{i}">{_text(task)}</h2>')
        sections += [_figure(name, figure) for name, figure in compare_over_time(here, style)]
        if slider := slider_data(here):
            sections.append(_slider(len(sliders), slider, len(here)))
            sliders.append(slider)
        sections += [_figure(name, figure) for name, figure in compare_rooms(here)]
        sections += [_setting(group, folder) for group in here]
        sections.append("</section>")
    table = rows(groups, style.stat)
    # Drawing has read every file by now, so the runs know all problems.
    unread = [problem for group in groups for run in group.runs for problem in run.problems]
    body = [f"<h1>{_text(title)}</h1>", f'<p class="quiet">{_text(legend(table, style.stat))}</p>']
    body += [f'<p class="quiet">{_text(problem)}</p>' for problem in [*problems, *unread]]
    if len(tasks) > 1:
        links = (f'<li><a href="#task-{i}">{_text(task)}</a></li>' for i, task in enumerate(tasks))
        body.append(f"<nav><ul>{''.join(links)}</ul></nav>")
    body += [_table(HEADER, cells(table), numbers_from=2), *sections]
    script = _part("page.js")
    parts = {
        "title": _text(title),
        "body": "\n".join(body),
        "sliders": json.dumps({"sliders": sliders, **palettes()}, separators=(",", ":"), allow_nan=False).replace(
            "<", "\\u003c"
        ),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    # One pass: a placeholder inside inserted text is not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("page.html"))


def _figure(name: str, figure: Figure) -> str:
    """Return a figure as inline SVG; the style sheet inverts it on dark pages, except for images."""
    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = out.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    kind = "figure with-image" if "<image" in svg else "figure"  # images keep their colours
    return f'<div class="{kind}" style="--natural: {figure.get_figwidth() * 6:.0f}rem">{svg}</div>'


def _slider(number: int, slider: dict[str, Any], settings: int) -> str:
    """Return the slider of a task and an empty canvas for each picture; the script draws on them.

    Args:
        number: Position in the page's list of sliders.
        slider: Data of the slider. Entries that the script does not need are removed.
        settings: Number of settings of the task.
    """
    last = len(slider["steps"]) - 1
    figures = []
    for i, panel in enumerate(slider["panels"]):
        has_bonus, has_map = panel.pop("has_bonus"), bool(panel["grid"])
        label = _text(panel.pop("label"))
        kinds = ["scatter"] * has_bonus + ["visits"] * has_map + ["bonus"] * (has_bonus and has_map)
        canvases = "".join(
            f'<canvas data-kind="{kind}" width="640" height="{_height(panel, kind)}" role="img" '
            f'aria-label="{kind} of {label}"></canvas>'
            for kind in kinds
        )
        caption = f'<figcaption><b>{label}</b><span class="state"></span></figcaption>'
        figures.append(f'<figure data-panel="{i}">{caption}{canvases}</figure>')
    more = f'<p class="quiet">The first {MAX_PANELS} of {settings} settings.</p>' if settings > MAX_PANELS else ""
    return (
        f'<h3>Bonus over time</h3>{more}<div class="slider" data-slider="{number}"><label>Moment '
        f'<input type="range" min="0" max="{last}" value="{last}" step="1"><output></output></label>'
        f'<div class="panels">{"".join(figures)}</div></div>'
    )


def _height(panel: dict[str, Any], kind: str) -> int:
    if kind == "scatter":
        return 600
    columns, lines = panel["grid"]
    return int(min(900, 640 * lines / columns)) + 64  # below the map is its colour bar


def _setting(group: Group, folder: Path) -> str:
    """Return the config keys of a setting, and its runs with links to their files."""
    config = {key: value for key, value in group.first.config.items() if key not in _HIDDEN_KEYS}
    keys = [(key, json.dumps(value)) for key, value in sorted(flat(config), key=lambda pair: pair[0])]
    keys.insert(0, ("the command", " ".join(o for o in group.first.overrides if not o.startswith("seed="))))
    runs = "".join(f"<li>seed {run.seed}, {_state(run)}: {_links(run, folder)}</li>" for run in group.runs)
    return (
        f"<details><summary><b>{_text(group.label)}</b>, {len(group.runs)} seed{'s' * (len(group.runs) != 1)}: "
        f'settings and files</summary><ul class="files">{runs}</ul>'
        f"{_table(('key', 'value'), keys, kind='key')}</details>"
    )


def _state(run: Record) -> str:
    return f"{_text(current_state(run.folder, run.summary))} at step {run.last_step:,.0f}"


def _links(run: Record, folder: Path) -> str:
    """Return links to the files of a run that exist."""
    layout = run.files
    paths = (layout.config, layout.metrics, layout.summary, layout.log, layout.counts, layout.plots)
    # The prefix ./ is needed because the name of a folder may look like a URL scheme.
    return " ".join(
        f'<a href="./{quote(os.fsencode(os.path.relpath(path.absolute(), folder.absolute())))}">{_text(path.name)}</a>'
        for path in paths
        if path.exists()
    )


def _table(header: Sequence[str], lines: Iterable[Sequence[str]], numbers_from: int = 99, kind: str = "") -> str:
    """Return a table.

    Args:
        header: Names of the columns.
        lines: Cells of each line.
        numbers_from: First column that holds numbers, aligned to the right.
        kind: CSS class of the other cells.
    """

    def line(values: Sequence[str], tag: str) -> str:
        classes = ["number" if i >= numbers_from else kind for i in range(len(values))]
        marked = (f'<{tag} class="{c}">{_text(v)}</{tag}>' for v, c in zip(values, classes, strict=True))
        return f"<tr>{''.join(marked)}</tr>"

    body = "".join(line(values, "td") for values in lines)
    return f'<div class="wide"><table><thead>{line(header, "th")}</thead><tbody>{body}</tbody></table></div>'


def _text(value: Any) -> str:
    """Return a value as escaped text."""
    shown = str(value).encode("utf-8", "replace").decode()  # file names may hold bytes that are not valid UTF-8
    return html.escape(shown, quote=True)


def _part(name: str) -> str:
    return (files("cfn.analysis.report") / name).read_text(encoding="utf-8")
