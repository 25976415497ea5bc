"""Runs that repeat a setting with other seeds, and what tells one setting from another.

The method's name is that of its bonus, as the paper has it. Where settings of a task differ, the keys in which they do
follow it: those of environment and run in all methods' names, those of agent and bonus in the names of their method's
settings. Keys that a command line named are always told; of the others as few as tell all settings apart, so that a
value that only follows from another is not said twice.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cfn.analysis.files import is_number
from cfn.analysis.runs import Record, plain

BONUSES = {"cfn": "CFN", "pixelcnn": "PixelCNN", "rnd": "RND", "count": "true counts", "none": "no bonus"}
AGENTS = {"sac": "SAC", "rainbow": "Rainbow", "random": "random"}


@dataclass(frozen=True)
class Group:
    """The seeds of one setting.

    Attributes:
        task: The environment that it is about.
        method: What it does there.
        runs: One for each seed, in their order.
        keys: What tells it from the other settings of its task and method.
    """

    task: str
    method: str
    runs: tuple[Record, ...]
    keys: dict[str, Any]

    @property
    def label(self) -> str:
        """Its name in a legend."""
        return self.without()

    @property
    def first(self) -> Record:
        """One of the runs, to ask about the setting."""
        return self.runs[0]

    @property
    def counts(self) -> bool:
        """Whether its bonus means to be a count, and so belongs on the dashed line."""
        return self.first.counts

    def without(self, *keys: str) -> str:
        """Its name, but for some keys that a figure's axis says."""
        return ", ".join([self.method, *(f"{plain(k)}={_shown(v)}" for k, v in self.keys.items() if k not in keys)])


def group(records: Sequence[Record]) -> tuple[list[Group], list[str]]:
    """Group runs by their setting, by task, method and the values of what differs; and say which are not used.

    Of runs with the same setting and seed, which are the same run twice, the one that came furthest counts.
    """
    seeds: dict[str, dict[int, Record]] = {}
    repeated = 0
    alike: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        alike.setdefault((record.task, record.agent, record.bonus), []).append(record)
    news = {pair: _news(some) for pair, some in alike.items()}
    for record in records:
        left_out = news[record.task, record.agent, record.bonus]
        setting = {key: value for key, value in record.setting.items() if key not in left_out}
        key = json.dumps([record.task, setting], sort_keys=True)
        others = seeds.setdefault(key, {})
        other = others.get(record.seed)
        repeated += other is not None
        if other is None or record.reached >= other.reached:
            others[record.seed] = record
    groups = []
    for by_seed in seeds.values():
        runs = tuple(by_seed[seed] for seed in sorted(by_seed))
        groups.append(Group(runs[0].task, method(runs[0]), runs, {}))
    tasks, methods = (list(dict.fromkeys(getattr(one, what) for one in groups)) for what in ("task", "method"))
    groups = tell_apart(groups)
    groups.sort(key=lambda one: (tasks.index(one.task), methods.index(one.method), *map(_rank, one.keys.values())))
    one = "1 run has the setting and seed of another and is"
    many = f"{repeated} runs have the setting and seed of others and are"
    problems = [f"{one if repeated == 1 else many} left out: of each seed, the run that came furthest counts"]
    return _numbered(groups), problems if repeated else []


def tell_apart(groups: Sequence[Group]) -> list[Group]:
    """The groups, each with the keys that tell it from the others of its task."""
    result = list(groups)
    for task in dict.fromkeys(one.task for one in groups):
        here = [i for i, one in enumerate(groups) if one.task == task]
        shared = _telling([groups[i] for i in here], [], _is_shared)
        for name in dict.fromkeys(groups[i].method for i in here):
            alike = [i for i in here if groups[i].method == name]
            keys = _telling([groups[i] for i in alike], shared, lambda _: True)
            for i in alike:
                result[i] = replace(groups[i], keys={key: groups[i].first.setting.get(key) for key in keys})
    return result


def _numbered(groups: Sequence[Group]) -> list[Group]:
    """The groups; those of a task that are called alike, because what differs is too long to be shown, by number."""
    called, result = Counter((one.task, one.label) for one in groups), []
    met: Counter[tuple[str, str]] = Counter()
    for one in groups:
        name = one.task, one.label
        met[name] += 1
        result.append(replace(one, method=f"{one.method} ({met[name]})") if called[name] > 1 else one)
    return result


def swept(groups: Sequence[Group]) -> list[str]:
    """The keys that have several values, all of them numbers, within one method."""
    values: dict[tuple[str, str], list[Any]] = {}
    for one in groups:
        for key, value in one.keys.items():
            values.setdefault((one.method, key), []).append(value)
    numeric = {key: None for (_, key), here in values.items() if all(map(is_level, here)) and len(set(here)) > 1}
    return list(numeric)


def is_level(value: Any) -> bool:
    """Whether a key's value is a number, over which a bar can stand."""
    return is_number(value) and not isinstance(value, bool)


def method(record: Record) -> str:
    """What a run's method is called: its bonus, and what that goes without; without a bonus, the agent."""
    bonus, agent = record.group("bonus"), record.group("agent")
    noisy = bool(agent.get("noisy"))
    if record.bonus == "none" and (record.agent == "sac" or noisy):  # the paper's baselines
        return "noisy Rainbow" if noisy else AGENTS[record.agent]
    without = [what for key, what in (("prior", "prior"), ("prioritize", "priorities")) if bonus.get(key) is False]
    bare = record.bonus.lstrip("_")  # matplotlib's legends leave out what begins with it
    name = BONUSES.get(record.bonus, bare) + (f" without {' or '.join(without)}" if without else "")
    name = "zero flips" if bonus.get("flips") == "zero" else name
    return f"{name}, noisy" if noisy else name


def _news(records: Sequence[Record]) -> set[str]:
    """Keys that only some runs have, as of a newer release, with one value that nobody asked for: they tell nothing."""
    known = Counter(key for record in records for key in record.setting)
    new = {
        key
        for key, times in known.items()
        if times < len(records) and len({json.dumps(r.setting[key]) for r in records if key in r.setting}) == 1
    }
    named = set().union(*(record.named for record in records)) if new else set()
    return {key for key in new if not _was_named(key, named)}


def _telling(groups: Sequence[Group], known: Sequence[str], eligible: Callable[[str], bool]) -> list[str]:
    """The keys that tell groups apart: those that are known already, all that commands named, others found greedily."""
    settings = [one.first.setting for one in groups]
    values = {
        key: [json.dumps(setting.get(key)) for setting in settings]
        for key in dict.fromkeys(key for setting in settings for key in setting)
    }
    news = _news([one.first for one in groups])
    columns = {
        key: column for key, column in values.items() if len(set(column)) > 1 and key not in news and eligible(key)
    }
    kinds = len(set(zip(*columns.values(), strict=True)))
    named = set().union(*(one.first.named for one in groups))
    chosen, parts = list(known), [tuple(values[key][i] for key in known) for i in range(len(groups))]
    candidates = {key: column for key, column in columns.items() if key not in known}
    while candidates:
        split = {key: len(set(zip(parts, column, strict=True))) for key, column in candidates.items()}
        # what a command said, of that the most telling; of equals what it said by this very name, then the shortest
        best = max(candidates, key=lambda key: (_was_named(key, named), split[key], key in named, -len(key)))
        if not _was_named(best, named) and len(set(parts)) >= kinds:
            break
        parts = [(*part, value) for part, value in zip(parts, candidates.pop(best), strict=True)]
        chosen.append(best)
    return chosen


def _is_shared(key: str) -> bool:
    """Whether a key means the same whatever the method is."""
    return key.startswith("env.") or ("." not in key and key != "bonus")


def _was_named(key: str, named: set[str]) -> bool:
    """Whether a command named the key, or a group of keys that it is in."""
    return any(key == name or ("." in name and key.startswith(f"{name}.")) for name in named)


def _rank(value: Any) -> tuple[bool, float, str]:
    """Numbers by their size, then anything else by its letters."""
    number = isinstance(value, int | float)
    return not number, float(value) if number else 0.0, "" if number else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return short if float(short := f"{value:g}") == value else repr(value)
    text = f"{value:,}" if is_level(value) and abs(value) >= 10_000 else plain(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
