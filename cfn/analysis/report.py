"""`cfn report`: one page on runs, in one file that needs no network and runs nothing but its own script.

Everything that comes from a run's files is text in it, never markup: it is escaped, and the page's policy lets a
browser run the one script whose checksum it names.
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

from cfn.analysis.comparison import over_time, rooms_of
from cfn.analysis.files import flat
from cfn.analysis.film import PANELS, film, palettes
from cfn.analysis.groups import Group
from cfn.analysis.listing import state_of
from cfn.analysis.panels import Style
from cfn.analysis.runs import Record
from cfn.analysis.tables import HEADER, cells, legend, rows

_FILES = (".hydra/config.yaml", "metrics.jsonl", "summary.json", "train.log", "counts", "plots")
"""Of a run, those that are linked where they are there."""
_NOT_SHOWN = ("seed", "suite", "hydra")
"""Keys that a setting's runs differ in, and tables that other keys point into."""


def page(groups: Sequence[Group], style: Style, problems: Sequence[str], folder: Path) -> str:
    """The page.

    Args:
        groups: What it is about.
        style: What is said of several seeds.
        problems: Sentences on what was left out.
        folder: Where it will lie; links to the runs' files are relative to it.
    """
    films: list[dict[str, Any]] = []
    tasks = list(dict.fromkeys(group.task for group in groups))
    number = sum(len(group.runs) for group in groups)
    title = f"{number} run{'s' * (number != 1)}: {', '.join(tasks[:4])}{' and more' * (len(tasks) > 4)}"
    sections: list[str] = []
    for i, task in enumerate(tasks):
        here = [group for group in groups if group.task == task]
        sections.append(f'<section><h2 id="task-{i}">{_text(task)}</h2>')
        sections += [_figure(name, figure) for name, figure in over_time(here, style)]
        if moments := film(here):
            sections.append(_film(len(films), moments, len(here)))
            films.append(moments)
        sections += [_figure(name, figure) for name, figure in rooms_of(here)]
        sections += [_setting(group, folder) for group in here]
        sections.append("</section>")
    table = rows(groups, style)
    unread = [problem for group in groups for run in group.runs for problem in run.problems]  # known by now
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
        "films": json.dumps({"films": films, **palettes()}, separators=(",", ":"), allow_nan=False).replace(
            "<", "\\u003c"
        ),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    # in one pass: what is put in is not looked through for more
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _part("page.html"))


def _figure(name: str, figure: Figure) -> str:
    """A picture as vector graphics in the page itself; dark pages turn its black to white."""
    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = out.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    kind = "figure with-image" if "<image" in svg else "figure"  # whose colours are as they are
    return f'<div class="{kind}" style="--natural: {figure.get_figwidth() * 6:.0f}rem">{svg}</div>'


def _film(number: int, moments: dict[str, Any], settings: int) -> str:
    """The slider, and a place for each setting's pictures; the script draws them."""
    last = len(moments["moments"]) - 1
    figures = []
    for i, panel in enumerate(moments["panels"]):
        kinds = ["scatter"] * panel["bonus"] + ["visits"] * bool(panel["cells"])
        kinds += ["bonus"] * (panel["bonus"] and bool(panel["cells"]))
        drawn = "".join(
            f'<canvas data-kind="{kind}" width="640" height="{_height(panel, kind)}" role="img" '
            f'aria-label="{kind} of {_text(panel["label"])}"></canvas>'
            for kind in kinds
        )
        caption = f'<figcaption><b>{_text(panel["label"])}</b><span class="state"></span></figcaption>'
        figures.append(f'<figure data-panel="{i}">{caption}{drawn}</figure>')
        del panel["label"], panel["bonus"]
    more = f'<p class="quiet">The first {PANELS} of {settings} settings.</p>' if settings > PANELS else ""
    return (
        f'<h3>Bonus over time</h3>{more}<div class="film" data-film="{number}"><label>Moment '
        f'<input type="range" min="0" max="{last}" value="{last}" step="1"><output></output></label>'
        f'<div class="panels">{"".join(figures)}</div></div>'
    )


def _height(panel: dict[str, Any], kind: str) -> int:
    if kind == "scatter":
        return 600
    columns, lines = panel["cells"]
    return int(min(900, 640 * lines / columns)) + 64


def _setting(group: Group, folder: Path) -> str:
    """The keys of a setting, and its runs with links to their files."""
    config = {key: value for key, value in group.first.config.items() if key not in _NOT_SHOWN}
    keys = [(key, json.dumps(value)) for key, value in sorted(flat(config), key=lambda pair: pair[0])]
    keys.insert(0, ("the command", " ".join(o for o in group.first.overrides if not o.startswith("seed="))))
    runs = "".join(f"<li>seed {run.seed}, {_state(run)}: {_links(run, folder)}</li>" for run in group.runs)
    return (
        f"<details><summary><b>{_text(group.label)}</b>, {len(group.runs)} seed{'s' * (len(group.runs) != 1)}: "
        f'settings and files</summary><ul class="files">{runs}</ul>'
        f"{_table(('key', 'value'), keys, kind='key')}</details>"
    )


def _state(run: Record) -> str:
    return f"{_text(state_of(run.summary, run.folder))} at step {run.reached:,.0f}"


def _links(run: Record, folder: Path) -> str:
    below = os.path.relpath(run.folder.absolute(), folder.absolute())
    there = [name for name in _FILES if (run.folder / name).exists()]
    # ./ before it: a folder's name may look like the scheme of an address
    return " ".join(
        f'<a href="./{quote(os.fsencode(f"{below}/{name}"))}">{_text(name.removeprefix(".hydra/"))}</a>'
        for name in there
    )


def _table(header: Sequence[str], lines: Iterable[Sequence[str]], numbers_from: int = 99, kind: str = "") -> str:
    def line(values: Sequence[str], tag: str) -> str:
        classes = ["number" if i >= numbers_from else kind for i in range(len(values))]
        marked = (f'<{tag} class="{c}">{_text(v)}</{tag}>' for v, c in zip(values, classes, strict=True))
        return f"<tr>{''.join(marked)}</tr>"

    body = "".join(line(values, "td") for values in lines)
    return f'<div class="wide"><table><thead>{line(header, "th")}</thead><tbody>{body}</tbody></table></div>'


def _text(value: Any) -> str:
    shown = str(value).encode("utf-8", "replace").decode()  # names of files may hold bytes that are no letters
    return html.escape(shown, quote=True)


def _part(name: str) -> str:
    return (files("cfn.analysis") / name).read_text(encoding="utf-8")
