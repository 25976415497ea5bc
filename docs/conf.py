"""Sphinx configuration of the website: `nox -s docs`.

The API reference is written here from the modules of the package, so a new module appears without another line.
"""

import re
from pathlib import Path
from typing import Any, get_origin

from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

import cfn
import cfn.types

HERE = Path(__file__).parent
PACKAGE = Path(cfn.__file__).parent

project = "cfn"
author = "The cfn developers"
copyright = author
version = release = cfn.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
nitpicky = True
# Links into other projects would need their inventories from the network. Links into this one are all checked.
nitpick_ignore_regex = [(r"py:.*", r"(?!cfn\b).*")]
# Type variables have no page of their own.
nitpick_ignore_regex += [
    (r"py:.*", rf"cfn\..*\.{variable}")
    for path in PACKAGE.rglob("*.py")
    for variable in re.findall(r"^(\w+) = TypeVar\(", path.read_text(encoding="utf-8"), re.M)
]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the included CHANGELOG and CONTRIBUTING begin at their own levels

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints_format = "short"
python_display_short_literal_types = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
pygments_style = "tango"
html_title = f"cfn {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options: dict[str, Any] = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#2f5fa8", "color-brand-content": "#2f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#8ab4f8", "color-brand-content": "#8ab4f8"},
}

INTERNAL = ("analysis", "cli")
"""Parts that belong to the commands and are not meant to be imported."""


def write_api_pages() -> None:
    """Write one page per part, with a section for each of its modules."""
    folder = HERE / "api"
    parts = [path.parent for path in PACKAGE.glob("*/__init__.py") if path.parent.name not in INTERNAL]
    pages = {"cfn": _page("cfn", PACKAGE)} | {f"cfn.{part.name}": _page(f"cfn.{part.name}", part) for part in parts}
    for path in folder.glob("cfn*.md"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # else Sphinx would read it again
            path.write_text(text, encoding="utf-8")


def _page(name: str, folder: Path) -> str:
    modules = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("__"))
    sections = [f"# {name}\n\n{_automodule(name, 'no-members')}"]
    sections += [f"## {name}.{module}\n\n{_automodule(f'{name}.{module}')}" for module in modules]
    return "\n".join(sections)


def _automodule(name: str, *options: str) -> str:
    lines = [f".. automodule:: {name}", *(f"   :{option}:" for option in options)]
    return "\n".join(["```{eval-rst}", *lines, "```", ""])


def markdown_to_rst(what: str, lines: list[str]) -> None:
    """Turn the Markdown of a docstring (code spans, fenced blocks) into reStructuredText, before Napoleon reads it."""
    # Napoleon would take the words before a colon for the type of an attribute; after an empty comment it does not.
    converted = ["..", ""] if what in ("attribute", "data", "property") else []
    fenced = False
    for line in lines:
        if line.lstrip().startswith("```"):
            fenced = not fenced
            indent = line[: len(line) - len(line.lstrip())]
            converted += [f"{indent}::", ""] if fenced else [""]
        elif fenced:
            converted.append(f"    {line}")
        else:
            spans = re.split(r"(`[^`]+`)", line)
            converted.append("".join(f"`{span}`" if span.startswith("`") else _escaped(span) for span in spans))
    lines[:] = converted


def _escaped(text: str) -> str:
    """Keep characters that reStructuredText would read as markup, such as those of |f(s)|^2."""
    return re.sub(r"([*|_\\])", r"\\\1", text)


ALIASES = {
    stringify_annotation(alias, "smart"): name
    for name, alias in vars(cfn.types).items()
    if get_origin(alias) is not None
}
ANNOTATED = re.compile(r"~(?:typing|collections\.abc)\.Annotated\[((?:[^\[\],]|\[[^\]]*\])+)(?:, ~?[\w.]+\([^)]*\))+\]")


def short_types(*annotations: str | None) -> tuple[str | None, ...]:
    """Show the aliases of `cfn.types`, such as `Positive` and `Array`, by their names."""

    def short(text: str | None) -> str | None:
        for long in sorted(ALIASES, key=len, reverse=True):
            text = text and text.replace(long, ALIASES[long])
        return text and ANNOTATED.sub(r"\1", text)

    return tuple(map(short, annotations))


def setup(app: Sphinx) -> None:
    """Write the API pages, and connect what reads docstrings (before Napoleon does) and signatures."""
    write_api_pages()
    app.connect("autodoc-process-docstring", lambda *event: markdown_to_rst(event[1], event[-1]), priority=400)
    app.connect("autodoc-process-signature", lambda *event: short_types(*event[-2:]))
