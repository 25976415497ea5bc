"""`cfn train --help`: the groups and keys of the given command, or one key in full."""

import difflib
import re
import shutil
import textwrap
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode

from cfn.cli.keys import GROUPS, Composition, Key, Section, first_sentence
from cfn.config import CONF
from cfn.errors import UsageError
from cfn.launch.composed import AUTO, agents_by_kind, with_agent, with_agent_for, without_hydra
from cfn.launch.config_loader import config_loader
from cfn.launch.sweeper import combinations
from cfn.schema import unknown_key

HEADER = """\
cfn train: train any agent with any bonus in any environment, with the true visit counts beside them.

  cfn train                                          a small visual gridworld, minutes on a laptop
  cfn train env=gridworld bonus=count                the paper's values for an environment
  cfn train -m bonus=none,count seed=0,1             a sweep of four runs
  cfn train experiment=gridworld_noise preset=mini   a figure of the paper, at a reduced size"""
FOOTER = """\
More help
  cfn train env=NAME bonus=NAME --help               the keys of other options
  cfn train --help KEY                               one key in full; or a group: cfn train --help bonus
  cfn train --config-dir DIR --help                  with your own configs
  cfn train --cfg job --resolve                      all values, as YAML
  cfn train --hydra-help                             Hydra's flags"""
ORDER = (*GROUPS, "experiment", "preset", "suite")
"""Order of the groups."""
MIN_WIDTH, MAX_WIDTH = 80, 120
"""Smallest and largest width of the text, in columns."""
MAX_VALUE, MAX_TYPE = 16, 22
"""Largest widths of the columns for values and types."""


def show(words: Sequence[str], config_dir: str | None) -> None:
    """Print help on a command.

    Args:
        words: Its overrides, and the keys and groups to explain.
        config_dir: Folder of the user's own configs.
    """
    asked = [word for word in words if "=" not in word and not word.startswith("~")]
    help_ = Help([word for word in words if word not in asked], config_dir)
    print("\n\n".join(help_.on(word) for word in asked) if asked else help_.overview())


class Help:
    """Help on one composition of options.

    Args:
        overrides: Overrides of the command line; of a sweep, the first run is explained.
        config_dir: Folder of the user's own configs.
    """

    def __init__(self, overrides: Sequence[str], config_dir: str | None) -> None:
        self._folders = [CONF, *([Path(config_dir)] if config_dir else [])]
        self._width = min(max(shutil.get_terminal_size((110, 24)).columns, MIN_WIDTH), MAX_WIDTH)
        self._loader = config_loader(config_dir)
        parsed = OverridesParser.create(config_loader=self._loader).parse_overrides(list(overrides))
        composed = self._loader.load_configuration("config", combinations(parsed)[0], RunMode.RUN)
        self._choices = composed.hydra.runtime.choices
        given = {override.key_or_group for override in parsed}
        self._alternatives = list(_with_agents(Composition(without_hydra(composed), self._choices, given)))
        self._composition = self._alternatives[0]

    def overview(self) -> str:
        """Return all groups and keys."""
        rows = [[group, str(self._choices.get(group)), ", ".join(self._options(group))] for group in self._groups()]
        lines = [HEADER, "", "Groups: group=option", *_table([("group", "chosen", "options"), *rows], self._width)]
        for section in self._sections():
            lines += ["", *self._section(section)]
        return "\n".join([*lines, "", FOOTER])

    def on(self, word: str) -> str:
        """Return the help on one key, or on the keys of a group; raise `UsageError` if there is none."""
        sections = list(self._sections())
        keys = [key for section in sections for key in section.keys]
        found = [(section.title, key) for section in sections for key in section.keys if key.name == word]
        if found:
            titles = [f"with {title}: " if len(found) > 1 else "" for title, _ in found]
            return "\n\n".join(t + _in_full(key, self._width) for t, (_, key) in zip(titles, found, strict=True))
        if word in self._groups():
            return self._on_group(word)
        if inside := [key for key in keys if key.name.startswith(f"{word}.")]:
            return "\n".join(self._key_table(inside))
        if word.startswith("suite.") and self._composition.has(word):
            users = ", ".join(key.name for key in keys if key.origin.startswith(f"{word},"))
            meaning = f"Default of {users}." if users else "Default of a key of other options."
            return _in_full(self._composition.plain(word, meaning), self._width)
        raise UsageError(_unknown(word, dict.fromkeys(key.name for key in keys)))

    def _on_group(self, group: str) -> str:
        rows = [[option, self._comment(group, option)] for option in self._options(group)]
        lines = [f"{group}={self._choices.get(group)}; the options:", *_table(rows, self._width)]
        for section in self._sections() if group in GROUPS else []:
            if section.title.startswith((f"{group}=", f"{group}.")):
                lines += ["", *self._section(section)]
        return "\n".join(lines)

    def _sections(self) -> Iterator[Section]:
        yield self._composition.of_every_run()
        for group in GROUPS:
            for composition in self._alternatives if group == "agent" else [self._composition]:
                for owner in (group, *composition.parts_of(group)):
                    yield composition.of_group(owner)

    def _groups(self) -> list[str]:
        found = [group for group in self._loader.list_groups("") if group != "hydra"]
        return sorted(found, key=lambda group: (ORDER.index(group) if group in ORDER else len(ORDER), group))

    def _options(self, group: str) -> list[str]:
        return sorted(self._loader.get_group_options(group, ObjectType.CONFIG))

    def _comment(self, group: str, option: str) -> str:
        """Return the first sentence of the comment at the beginning of an option's YAML file."""
        for folder in self._folders:
            if (path := folder / group / f"{option}.yaml").is_file():
                text = re.sub(r"^# @package .*\n", "", path.read_text(encoding="utf-8"))
                comment = re.match(r"(?:#.*\n)*", text)
                return first_sentence(re.sub("^# ?", "", comment[0] if comment else "", flags=re.M))
        return ""

    def _section(self, section: Section) -> list[str]:
        """Return the title, a sentence and the keys of a section."""
        group, _, option = section.title.partition("=")
        title = section.title
        if group == "agent" and self._choices.agent == AUTO:
            kinds = [kind for kind, agent in agents_by_kind(self._choices).items() if agent == option]
            title += f" (agent={AUTO} with {' or '.join(kinds)} actions)"
        sentence = section.problem or self._comment(group.partition(".")[0], option) or section.summary
        heading = f"{title}: {sentence}" if sentence else title
        if not (section.keys or section.problem):
            heading += " It has no keys."
        return [*textwrap.wrap(heading, self._width), *self._key_table(section.keys)]

    def _key_table(self, keys: Sequence[Key]) -> list[str]:
        rows = [[key.name, key.value, key.type, first_sentence(key.meaning)] for key in keys]
        return _table(rows, self._width, limits={1: MAX_VALUE, 2: MAX_TYPE})


def _with_agents(composition: Composition) -> Iterator[Composition]:
    """Yield the composition with the agent that `agent=auto` stands for; one for each if the environment is unknown."""
    config, choices = composition.config, composition.choices
    if choices.get("agent") != AUTO:
        yield composition
        return
    try:
        complete = [with_agent(config, choices)]
    except Exception:  # a half-specified environment, or one that cannot be constructed
        complete = [with_agent_for(kind, config, choices) for kind in agents_by_kind(choices)]
    for chosen, names in complete:
        yield Composition(chosen, names, composition.given)


def _unknown(word: str, names: Collection[str]) -> str:
    """Return a sentence on a key that does not exist, with those that are like it."""
    parent = word.rpartition(".")[0]
    if parent and (beside := [name.removeprefix(f"{parent}.") for name in names if name.startswith(f"{parent}.")]):
        return unknown_key(word, beside)
    like = [name for name in names if name.endswith(f".{word}")] or difflib.get_close_matches(word, names)
    guess = f"did you mean {' or '.join(like)}?" if like else "cfn train --help lists the groups and keys"
    return f"{word} is not a key: {guess}"


def _in_full(key: Key, width: int) -> str:
    lines = [f"{key.name}={key.value}", *textwrap.wrap(key.meaning, width - 2)]
    lines += [f"Type: {key.type}"] if key.type else []
    lines += [f"Value from: {key.origin}"] if key.origin else []
    return "\n  ".join(lines)


def _table(rows: Sequence[Sequence[str]], width: int, limits: dict[int, int] | None = None) -> list[str]:
    """Return rows as aligned lines; cells that are too long continue on further lines.

    Args:
        rows: Cells of each row.
        width: Width of the table, in columns.
        limits: Largest width of some columns; the last column takes the rest.
    """
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    widths = [min(size, (limits or {}).get(i, size)) for i, size in enumerate(widths)]
    widths[-1] = width - sum(widths[:-1]) - 2 * len(widths)
    lines = []
    for row in rows:
        cells = [textwrap.wrap(cell, size) or [""] for cell, size in zip(row, widths, strict=True)]
        for i in range(max(map(len, cells))):
            parts = [cell[i] if i < len(cell) else "" for cell in cells]
            lines.append("".join(f"  {part:<{size}}" for part, size in zip(parts, widths, strict=True)).rstrip())
    return lines
