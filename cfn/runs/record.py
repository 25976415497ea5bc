"""A run as its files describe it, with results read on demand; and the search for runs below folders."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cfn.errors import UsageError
from cfn.naming import NOT_A_SETTING, environment, part_key
from cfn.runs.folder import Run
from cfn.runs.layout import METRICS
from cfn.runs.reading import (
    CountTable,
    Numbers,
    Series,
    flat,
    is_number,
    latest,
    printable,
    read_choices,
    read_config,
    read_counts,
    read_metrics,
    read_overrides,
    read_summary,
)

SCORE = "eval/return"
TRAINING, EPISODES = "train/return", "train/episodes"
ERROR, ARRIVAL_ERROR, FLOOR = "bonus/mse", "bonus/arrival_mse", "bonus/floor_mse"
STATES = "explore/states"
DISCOVERIES = {STATES: "distinct states seen", "explore/rooms": "rooms visited"}
SPEED = "speed/steps_per_second"
_EVALUATION_METRICS = (SCORE, ERROR, ARRIVAL_ERROR, FLOOR, *DISCOVERIES, SPEED)
"""Metrics kept in memory: all metrics of a thousand runs would be slow to read and large."""

_NOT_A_SETTING = NOT_A_SETTING | {"suite"}  # other keys take their values from the suite's tables


@dataclass(frozen=True)
class Record(Run):
    """A run with its results.

    Attributes:
        summary: Content of `summary.json`; empty if there is none.
        problems: Sentences on files that could not be used.
    """

    summary: Mapping[str, Any] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Record":
        """Return the run in a folder.

        Names come from the summary. A run killed before its first summary is named by Hydra's choices or, failing
        that, by its path.
        """
        config, summary = read_config(folder), read_summary(folder)
        env_keys = config.get("env")
        env_keys = env_keys if isinstance(env_keys, Mapping) else {}
        names = [summary.get(key) for key in ("env", "agent", "bonus")]
        if not all(isinstance(name, str) for name in names):
            choices = read_choices(folder, default=_names_in_path(folder))
            names = [choices.get(key, "?") for key in ("env", "agent", "bonus")]
            names[0] = environment(str(names[0]), env_keys)
        env, agent, bonus = map(without_tex, names)
        if env == environment("atari", env_keys):
            env = "atari"  # as older runs are named; `task` adds the game
        seeds = (config.get("seed"), summary.get("seed"))
        seed = next((seed for seed in seeds if isinstance(seed, int)), 0)
        return cls(folder, env, agent, bonus, seed, str(summary.get("setting", "")), config, summary)

    @property
    def estimates_counts(self) -> bool:
        """Whether the bonus estimates 1 / sqrt(N) and so belongs on the dashed line."""
        others = ("rnd", "none", "e3b", "first_visit", "icm", "noveld", "product", "successor")
        return self.bonus not in others

    @property
    def task(self) -> str:
        """Environment, with its map, mode or game if it has several."""
        env = self.group("env")
        parts = [env.get("map"), env.get("mode"), env.get("game") if self.env == "atari" else None]
        return " ".join([self.env, *(without_tex(part) for part in parts if isinstance(part, str) and part)])

    @cached_property
    def overrides(self) -> list[str]:
        """Overrides of the command that started the run."""
        try:
            return read_overrides(self.folder)
        except UsageError:
            return []

    @cached_property
    def named_keys(self) -> set[str]:
        """Keys named on the command line; `suite.cfn.lr` counts as `bonus.lr`, which takes its value from there."""
        owners = {f"suite.{self.agent}.": "agent.", f"suite.{self.bonus}.": "bonus.", "suite.": ""}
        keys = {part_key(override.lstrip("+~").partition("=")[0]) for override in self.overrides}
        for entry, owner in owners.items():
            keys = {owner + key.removeprefix(entry) if key.startswith(entry) else key for key in keys}
        return keys

    @cached_property
    def metrics(self) -> dict[str, Series]:
        """Metrics of evaluations."""
        return read_metrics(self.folder, _EVALUATION_METRICS)

    @property
    def training(self) -> Series | None:
        """Returns of training episodes; the mean if several ended at the same step."""
        return self._episodes.get(TRAINING)

    @property
    def iteration(self) -> int | None:
        """Environment steps between two evaluations; None if the run has no evaluations."""
        every = self.value("eval.every")
        return every if isinstance(every, int) and is_number(every) and every > 0 else None

    @cached_property
    def training_by_iteration(self) -> Series | None:
        """Mean return of the training episodes that ended in each iteration, at its last step.

        An iteration in which no episode ended has no value. An iteration that is not over is left out.
        """
        returns, length = self.training, self.iteration
        if returns is None or length is None:
            return None
        last = self.value("steps")  # the last iteration of a run may be shorter
        ends = np.minimum(np.ceil(returns.steps / length) * length, last if is_number(last) else np.inf)
        over = ends <= self.last_step
        if not over.any():
            return None
        steps, which = np.unique(ends[over], return_inverse=True)
        together = self._ended_together
        episodes = np.maximum(1.0, np.ones(len(over)) if together is None else together)[over]
        return Series(steps, np.bincount(which, episodes * returns.values[over]) / np.bincount(which, episodes))

    @property
    def goals(self) -> Series | None:
        """Sum of training returns so far: the number of goals, in tasks that pay 1 there and 0 elsewhere."""
        returns, episodes = self.training, self._ended_together
        if returns is None or episodes is None:
            return None
        return Series(returns.steps, np.cumsum(returns.values * episodes))

    @property
    def _ended_together(self) -> Numbers | None:
        """Number of episodes in each training return; None if the file does not tell."""
        returns, ended = self.training, self._episodes.get(EPISODES)
        if returns is None or ended is None or len(ended.steps) != len(returns.steps):
            return None
        return np.diff(ended.values, prepend=0)

    @cached_property
    def _episodes(self) -> dict[str, Series]:
        """Metrics of training episodes: one row each, so they are read only when needed."""
        return read_metrics(self.folder, [TRAINING, EPISODES])

    @cached_property
    def tables(self) -> list[Path]:
        """Paths of the count tables, oldest first."""
        return self.files.count_tables()

    def table(self, path: Path) -> CountTable | None:
        """Return a count table; None, with a sentence in `problems`, if it cannot be read or is empty."""
        try:
            table = read_counts(path)
            if not len(table.counts):
                raise UsageError(f"{path} has no states")
        except UsageError as error:
            self.problems[f"left out: {error}"] = None
            return None
        return table

    def newest_table(self) -> CountTable | None:
        """Return the newest count table that can be read."""
        return next((table for path in reversed(self.tables) if (table := self.table(path)) is not None), None)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Names of the groups and every config key that affects learning, except the seed."""
        names = {"env": self.env, "agent": self.agent, "bonus": self.bonus} | self._parts
        keys = flat({key: v for key, v in self.config.items() if key not in _NOT_A_SETTING})
        # the name of a group stands for its _target_
        return names | {key: value for key, value in keys if not key.endswith("_target_")}

    @cached_property
    def _parts(self) -> dict[str, str]:
        """Options chosen for the parts of the bonus, such as `bonus.novelty` of NovelD, by key."""
        nested = [f"bonus.{key}" for key, value in self.group("bonus").items() if isinstance(value, Mapping)]
        return {key: without_tex(self.choices.get(f"bonus@{key}", "?")) for key in nested}

    def group(self, name: str) -> Mapping[str, Any]:
        """Return one group of config keys; empty if it does not exist."""
        group = self.config.get(name)
        return group if isinstance(group, Mapping) else {}

    def value(self, key: str) -> Any:
        """Return the value of a command-line key: the name of a group, or a value of the config."""
        if key in ("env", "agent", "bonus"):
            return getattr(self, key)
        if key in self._parts:
            return self._parts[key]
        value: Any = self.config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    @cached_property
    def last_step(self) -> float:
        """Last step in `metrics.jsonl`."""
        return latest(self.folder, "step").get("step", 0.0)


def find_runs(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the run folders at or below the paths, and a sentence on each path that has none."""
    folders: dict[Path, Path] = {}
    problems: list[str] = []
    for path in paths:
        if not path.exists():
            problems.append(f"{path}: there is no such folder")
            continue
        if not path.is_dir():
            problems.append(f"{path} is a file: name a run folder, or a folder above runs")
            continue
        found = list(_runs_below(path, problems))
        for folder in found:
            folders.setdefault(folder.resolve(), folder)
        if not found:
            empty = os.access(path, os.R_OK) and not any(path.iterdir())
            reason = "is empty" if empty else f"holds no run: none of its folders has a {METRICS}"
            problems.append(f"{path} {reason}")
    return list(folders.values()), problems


def load_runs(paths: Sequence[Path]) -> tuple[list[Record], list[str]]:
    """Return the runs at or below the paths, and a sentence on each one that is left out."""
    folders, problems = find_runs(paths)
    records = []
    for folder in folders:
        try:
            record = Record.read(folder)
            if not (record.metrics or record.training):
                empty = not record.files.metrics.stat().st_size
                raise UsageError(f"{folder} has no metrics {'yet' if empty else 'that can be drawn'}")
        except UsageError as error:
            problems.append(f"left out: {error}")
        else:
            records.append(record)
    if not records:
        raise UsageError("; ".join(problems) or "there are no runs to read")
    return records, problems


def without_tex(name: Any) -> str:
    """Return a name that is safe in figures: matplotlib reads text between dollar signs as TeX."""
    return printable(name).replace("$", "?")


def _names_in_path(folder: Path) -> dict[str, str]:
    """Return env, agent and bonus from `<env>/<agent>-<bonus>/<date-time>/seed=<n>`."""
    env, pair = ["?", "?", *folder.absolute().parts][-4:-2]
    agent, _, bonus = pair.partition("-")
    return {"env": env, "agent": agent, "bonus": bonus or "?"}


def _runs_below(path: Path, problems: list[str]) -> Iterator[Path]:
    """Yield run folders at or below a path, sorted by name; runs are not searched, links are followed once."""

    def report(error: OSError) -> None:
        problems.append(f"left out: {error.filename} cannot be read: {error.strerror}")

    visited = set()
    for place, folders, files in os.walk(path, onerror=report, followlinks=True):
        if (home := os.path.realpath(place)) in visited:
            folders.clear()
            continue
        visited.add(home)
        if METRICS in files:
            folders.clear()
            yield Path(place)
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
