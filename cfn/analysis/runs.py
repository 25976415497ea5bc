"""Finding runs below folders, and knowing each by its files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cfn.analysis.files import (
    CountTable,
    Series,
    count_tables,
    flat,
    latest,
    printable,
    read_config,
    read_counts,
    read_metrics,
    read_overrides,
    read_summary,
    read_yaml,
)
from cfn.errors import UsageError
from cfn.naming import NOT_A_SETTING

SCORE = "eval/return"
TRAINING, EPISODES = "train/return", "train/episodes"
ERROR, FLOOR = "bonus/mse", "bonus/floor_mse"
STATES = "explore/states"
DISCOVERIES = {STATES: "distinct states seen", "explore/rooms": "rooms visited"}
SPEED = "speed/steps_per_second"
_DRAWN = (SCORE, ERROR, FLOOR, *DISCOVERIES, SPEED)
"""The metrics of evaluations that are kept in memory; of a thousand runs, all would be too many, and too slow."""

_NOT_A_SETTING = NOT_A_SETTING | {"suite"}  # whose tables are what other keys point to


@dataclass(frozen=True)
class Record:
    """A run, as its files tell it.

    Attributes:
        folder: Where they are.
        env: The environment's name.
        agent: The agent's.
        bonus: The bonus's.
        config: The composed config.
        summary: `summary.json`; empty if there is none.
        problems: Sentences on those of its files that could not be used, once they were asked for.
    """

    folder: Path
    env: str
    agent: str
    bonus: str
    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    problems: dict[str, None] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """What repetitions of a setting differ in."""
        known = (self.config.get("seed"), self.summary.get("seed"))
        return next((seed for seed in known if isinstance(seed, int)), 0)

    @property
    def counts(self) -> bool:
        """Whether its bonus means to be a count, and so belongs on the dashed line."""
        return self.bonus not in ("rnd", "none")

    @property
    def task(self) -> str:
        """The environment, and which of its games or modes, if it has several."""
        env = self.group("env")
        parts = [env.get("mode"), env.get("game") if self.env == "atari" else None]
        return " ".join([self.env, *(plain(part) for part in parts if isinstance(part, str) and part)])

    @cached_property
    def overrides(self) -> list[str]:
        """What the command said."""
        try:
            return read_overrides(self.folder)
        except UsageError:
            return []

    @cached_property
    def named(self) -> set[str]:
        """The keys that the command named; an entry of a suite by the key that takes its value from there."""
        takers = {f"suite.{self.agent}.": "agent.", f"suite.{self.bonus}.": "bonus.", "suite.": ""}
        keys = {override.lstrip("+~").partition("=")[0] for override in self.overrides}
        for entry, taker in takers.items():
            keys = {taker + key.removeprefix(entry) if key.startswith(entry) else key for key in keys}
        return keys

    @cached_property
    def metrics(self) -> dict[str, Series]:
        """The metrics of evaluations."""
        return read_metrics(self.folder, _DRAWN)

    @property
    def training(self) -> Series | None:
        """The returns of training episodes; of several that ended together, their mean."""
        return self._episodes.get(TRAINING)

    @property
    def goals(self) -> Series | None:
        """The sum of training returns so far: goals, in tasks that pay 1 there and nothing before."""
        returns, ended = self.training, self._episodes.get(EPISODES)
        if returns is None or ended is None or len(ended.steps) != len(returns.steps):
            return None
        return Series(returns.steps, np.cumsum(returns.values * np.diff(ended.values, prepend=0)))

    @cached_property
    def _episodes(self) -> dict[str, Series]:
        """Of training episodes: a row for each, and so not read before someone asks."""
        return read_metrics(self.folder, [TRAINING, EPISODES])

    @cached_property
    def tables(self) -> list[Path]:
        """Its count tables, oldest first."""
        return count_tables(self.folder)

    def table(self, path: Path) -> CountTable | None:
        """One of its count tables, if it can be read and has states in it."""
        try:
            table = read_counts(path)
            if not len(table.counts):
                raise UsageError(f"{path} has no states")
        except UsageError as error:
            self.problems[f"left out: {error}"] = None
            return None
        return table

    def newest_table(self) -> CountTable | None:
        """The newest of its count tables that can be read."""
        return next((table for path in reversed(self.tables) if (table := self.table(path)) is not None), None)

    @cached_property
    def setting(self) -> dict[str, Any]:
        """Every key that makes the run what it is, but for its seed: `bonus.lr` and so on, and its groups' names."""
        names = {"env": self.env, "agent": self.agent, "bonus": self.bonus}
        keys = flat({key: v for key, v in self.config.items() if key not in _NOT_A_SETTING})
        return names | {key: value for key, value in keys if not key.endswith("_target_")}  # the group's name says it

    def group(self, name: str) -> Mapping[str, Any]:
        """A group of the config's keys; empty if it is not there."""
        group = self.config.get(name)
        return group if isinstance(group, Mapping) else {}

    def value(self, key: str) -> Any:
        """What the run has for a key of the command line: a group's name, or a value of its config."""
        if key in ("env", "agent", "bonus"):
            return getattr(self, key)
        value: Any = self.config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    @cached_property
    def reached(self) -> float:
        """The last step that anything is known of."""
        return latest(self.folder, "step").get("step", 0.0)


def find(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The folders of runs at or below the paths, and a sentence on each path that has none."""
    folders: dict[Path, Path] = {}
    problems: list[str] = []
    for path in paths:
        if not path.exists():
            problems.append(f"{path}: there is no such folder")
            continue
        if not path.is_dir():
            problems.append(f"{path} is a file: name the folder of a run, or one that holds runs")
            continue
        found = list(_below(path, problems))
        for folder in found:
            folders.setdefault(folder.resolve(), folder)
        if not found:
            empty = os.access(path, os.R_OK) and not any(path.iterdir())
            what = "is empty" if empty else "holds no run (none of its folders has a metrics.jsonl)"
            problems.append(f"{path} {what}")
    return list(folders.values()), problems


def load(paths: Sequence[Path]) -> tuple[list[Record], list[str]]:
    """The runs at or below the paths, and a sentence on everything that is left out."""
    folders, problems = find(paths)
    records = []
    for folder in folders:
        try:
            record = read(folder)
            if not (record.metrics or record.training):
                empty = not (folder / "metrics.jsonl").stat().st_size
                raise UsageError(f"{folder} has no metrics {'yet' if empty else 'that could be drawn'}")
        except UsageError as error:
            problems.append(f"left out: {error}")
        else:
            records.append(record)
    if not records:
        raise UsageError("; ".join(problems) or "there are no runs to read")
    return records, problems


def read(folder: Path) -> Record:
    """One run. What it is called stands in its summary or, if it was killed too early for one, in Hydra's record."""
    config = read_config(folder)
    summary = read_summary(folder)
    names = [summary.get(key) for key in ("env", "agent", "bonus")]
    if not all(isinstance(name, str) for name in names):
        names = _choices(folder)
    env, agent, bonus = map(plain, names)
    return Record(folder, env, agent, bonus, config, summary)


def plain(name: Any) -> str:
    """A name that can be shown anywhere: between dollars, matplotlib reads TeX."""
    return printable(name).replace("$", "?")


def _choices(folder: Path) -> list[Any]:
    """Which environment, agent and bonus Hydra was told to take; else as the folder's path has it."""
    try:
        choices = read_yaml(folder / ".hydra" / "hydra.yaml")["hydra"]["runtime"]["choices"]
        return [choices[key] for key in ("env", "agent", "bonus")]
    except (UsageError, KeyError, TypeError):
        env, pair = ["?", "?", *folder.absolute().parts][-4:-2]
        agent, _, bonus = pair.partition("-")
        return [env, agent, bonus or "?"]


def _below(path: Path, problems: list[str]) -> Iterator[Path]:
    """Runs at or below a folder, in the order of their names; nothing below a run is looked at, and no folder twice."""

    def tell(error: OSError) -> None:
        problems.append(f"left out: {error.filename} cannot be read: {error.strerror}")

    seen = set()
    for place, folders, files in os.walk(path, onerror=tell, followlinks=True):
        if (home := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(home)
        if "metrics.jsonl" in files:
            folders.clear()
            yield Path(place)
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
