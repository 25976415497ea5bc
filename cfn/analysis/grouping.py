"""Groups of runs: the seeds of one setting, and the name of each setting.

A setting is named after its method, as in the paper. If the settings of a task differ in config keys, these keys follow
the method: keys of the environment and of the run in every name, keys of agent and bonus in the names of one method.
Keys named on a command line are always shown. Of the other keys, only as many are shown as are needed to distinguish
all settings, so a value that follows from another one is not repeated. Values are shown as they are written on a
command line; a key that a setting lacks is not in its name.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cfn.runs.reading import is_number, printable
from cfn.runs.record import Record, without_tex

BONUS_NAMES = {
    "cfn": "CFN",
    "cfn_tuned": "tuned CFN",
    "pixelcnn": "PixelCNN",
    "rnd": "RND",
    "count": "true counts",
    "none": "no bonus",
    "simhash": "SimHash",
    "cts": "CTS",
    "drnd": "DRND",
    "e3b": "E3B",
    "product": "global x episodic",
    "noveld": "NovelD",
    "icm": "ICM",
    "successor": "successor counts",
    "first_visit": "first visits",
}
DERIVED_FROM_BONUS = {"reward_clip"}
"""Keys whose value follows from the bonus in the suites of the paper."""
AGENT_NAMES = {"sac": "SAC", "rainbow": "Rainbow", "random": "random"}


@dataclass(frozen=True)
class Group:
    """The runs of one setting.

    Attributes:
        task: Environment, with its mode or game if it has several.
        method: Name of the method.
        runs: One run per seed, sorted by seed.
        keys: Config keys, with their values, that distinguish this setting from others of the same task and method.
        number: Number that distinguishes settings whose labels would be equal otherwise; 0: none is needed.
    """

    task: str
    method: str
    runs: tuple[Record, ...]
    keys: dict[str, Any]
    number: int = 0

    @property
    def label(self) -> str:
        """Name of the setting in a legend."""
        return self.label_without()

    @property
    def first(self) -> Record:
        """First run, for questions about the setting."""
        return self.runs[0]

    @property
    def estimates_counts(self) -> bool:
        """Whether the bonus estimates 1 / sqrt(N) and so belongs on the dashed line."""
        return self.first.estimates_counts

    def label_without(self, *keys: str) -> str:
        """Return the name of the setting without some keys, for figures that show them on an axis."""
        return ", ".join([f"{self.method}{self._number}", *self._pairs(keys)])

    @property
    def differences(self) -> str:
        """Name of the setting without the method: empty if the method has no other setting."""
        return ", ".join(self._pairs()) + self._number

    def _pairs(self, hidden: Sequence[str] = ()) -> list[str]:
        shown = {key: value for key, value in self.keys.items() if key not in hidden and key in self.first.settings}
        return [f"{without_tex(key)}={_format_value(value)}" for key, value in shown.items()]

    @property
    def _number(self) -> str:
        return f" ({self.number})" if self.number else ""


def group(records: Sequence[Record]) -> tuple[list[Group], list[str]]:
    """Return the runs grouped by setting, and a sentence if some were left out.

    If a setting was run twice with the same seed, the run with the most steps is used. Groups are sorted by task,
    method and the values of their keys.
    """
    groups, repeated = [], 0
    for runs in _by_setting(records):
        by_seed: dict[int, Record] = {}
        for record in runs:
            other = by_seed.get(record.seed)
            repeated += other is not None
            if other is None or record.last_step >= other.last_step:
                by_seed[record.seed] = record
        chosen = tuple(by_seed[seed] for seed in sorted(by_seed))
        groups.append(Group(chosen[0].task, method_name(chosen[0]), chosen, {}))
    tasks, methods = (list(dict.fromkeys(getattr(one, name) for one in groups)) for name in ("task", "method"))
    groups = _add_keys(groups)
    groups.sort(key=lambda one: (tasks.index(one.task), methods.index(one.method), *map(_sort_key, one.keys.values())))
    one = "1 run has the same setting and seed as another and is"
    many = f"{repeated} runs have the same setting and seed as others and are"
    problems = [f"{one if repeated == 1 else many} left out; for each seed, the run with the most steps is used"]
    return _number_equal_labels(groups), problems if repeated else []


def differing_keys(records: Sequence[Record]) -> list[str]:
    """Return for each run the keys in which runs of its task, agent and bonus differ, as text, as in a legend."""
    groups = []
    for runs in _by_setting(records):
        first = runs[0]
        groups.append(Group(f"{first.task} {first.agent} {first.bonus}", "", tuple(runs), {}))
    numbered = _number_equal_labels(_add_keys(groups))
    texts = {id(run): one.differences for one in numbered for run in one.runs}
    return [texts[id(record)] for record in records]


def swept_keys(groups: Sequence[Group]) -> list[str]:
    """Return the keys that have several values within one method, all of them numbers."""
    values: dict[tuple[str, str], list[Any]] = {}
    for one in groups:
        for key, value in one.keys.items():
            values.setdefault((one.method, key), []).append(value)
    numeric = {key: None for (_, key), here in values.items() if all(map(is_level, here)) and len(set(here)) > 1}
    return list(numeric)


def is_level(value: Any) -> bool:
    """Return whether the value of a key is a number, so that a bar can be drawn for it."""
    return is_number(value) and not isinstance(value, bool)


def method_name(record: Record) -> str:
    """Return the name of a run's method: the bonus, and the parts it lacks; without a bonus, the agent."""
    bonus, agent = record.group("bonus"), record.group("agent")
    noisy = bool(agent.get("noisy"))
    if record.bonus == "none" and (record.agent == "sac" or noisy):  # the paper's baselines
        return "noisy Rainbow" if noisy else AGENT_NAMES[record.agent]
    lacking = [part for key, part in (("prior", "prior"), ("prioritize", "priorities")) if bonus.get(key) is False]
    visible = record.bonus.lstrip("_")  # matplotlib hides legend entries that begin with an underscore
    name = BONUS_NAMES.get(record.bonus, visible) + (f" without {' or '.join(lacking)}" if lacking else "")
    name = "zero flips" if bonus.get("flips") == "zero" else name
    return f"{name}, noisy" if noisy else name


def _by_setting(records: Sequence[Record]) -> list[list[Record]]:
    """Return the runs of each setting."""
    alike: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        alike.setdefault((record.task, record.agent, record.bonus), []).append(record)
    ignored = {names: _ignored_keys(some) for names, some in alike.items()}
    runs_of: dict[str, list[Record]] = {}
    for record in records:
        left_out = ignored[record.task, record.agent, record.bonus]
        setting = {key: value for key, value in record.settings.items() if key not in left_out}
        runs_of.setdefault(json.dumps([record.task, setting], sort_keys=True), []).append(record)
    return list(runs_of.values())


def _add_keys(groups: Sequence[Group]) -> list[Group]:
    """Return the groups, each with the keys that distinguish it from the others of its task."""
    result = list(groups)
    for task in dict.fromkeys(one.task for one in groups):
        here = [i for i, one in enumerate(groups) if one.task == task]
        shared = _distinguishing_keys([groups[i] for i in here], [], _is_shared)
        for name in dict.fromkeys(groups[i].method for i in here):
            alike = [i for i in here if groups[i].method == name]
            keys = _distinguishing_keys([groups[i] for i in alike], shared, lambda _: True)
            for i in alike:
                result[i] = replace(groups[i], keys={key: groups[i].first.settings.get(key) for key in keys})
    return result


def _number_equal_labels(groups: Sequence[Group]) -> list[Group]:
    """Return the groups, numbered where labels of a task are equal: long values are cut."""
    total, result = Counter((one.task, one.label) for one in groups), []
    taken = {name for name, times in total.items() if times == 1}
    last: Counter[tuple[str, str]] = Counter()
    for one in groups:
        name = label = one.task, one.label
        while total[name] > 1 and (label == name or label in taken):
            last[name] += 1
            one = replace(one, number=last[name])
            label = one.task, one.label
        taken.add(label)
        result.append(one)
    return result


def _ignored_keys(records: Sequence[Record]) -> set[str]:
    """Return keys that only some runs have, with a single value, and that no command named.

    A newer release adds such keys. They do not distinguish settings.
    """
    occurrences = Counter(key for record in records for key in record.settings)
    partial = {
        key
        for key, times in occurrences.items()
        if times < len(records) and len({json.dumps(r.settings[key]) for r in records if key in r.settings}) == 1
    }
    named = set().union(*(record.named_keys for record in records)) if partial else set()
    return {key for key in partial if not _was_named(key, named)}


def _distinguishing_keys(groups: Sequence[Group], known: Sequence[str], eligible: Callable[[str], bool]) -> list[str]:
    """Return keys that distinguish all groups: known keys, keys that commands named, then keys found greedily.

    Args:
        groups: Groups of one task.
        known: Keys that are already in the names.
        eligible: Whether a key may be added.
    """
    settings = [one.first.settings for one in groups]
    keys = dict.fromkeys([*known, *(key for setting in settings for key in setting)])  # all may lack a known key
    values = {key: [json.dumps(setting.get(key)) for setting in settings] for key in keys}
    ignored = _ignored_keys([run for one in groups for run in one.runs])
    columns = {
        key: column for key, column in values.items() if len(set(column)) > 1 and key not in ignored and eligible(key)
    }
    named = set().union(*(one.first.named_keys for one in groups))
    bonuses = [one.first.bonus for one in groups]
    for key in DERIVED_FROM_BONUS & columns.keys() - named:
        if len(set(zip(bonuses, columns[key], strict=True))) == len(set(bonuses)):
            del columns[key]
    distinct = len(set(zip(*columns.values(), strict=True)))
    chosen, parts = list(known), [tuple(values[key][i] for key in known) for i in range(len(groups))]
    candidates = {key: column for key, column in columns.items() if key not in known}
    while candidates:
        split = {key: len(set(zip(parts, column, strict=True))) for key, column in candidates.items()}
        # Named keys first, then the key that separates most groups; then an exactly named key, then the shortest.
        best = max(candidates, key=lambda key: (_was_named(key, named), split[key], key in named, -len(key)))
        if not _was_named(best, named) and len(set(parts)) >= distinct:
            break
        parts = [(*part, value) for part, value in zip(parts, candidates.pop(best), strict=True)]
        chosen.append(best)
    return chosen


def _is_shared(key: str) -> bool:
    """Return whether a key means the same for every method."""
    return key.startswith("env.") or ("." not in key and key != "bonus")


def _was_named(key: str, named: set[str]) -> bool:
    """Return whether a command named the key or a group that contains it."""
    return any(key == name or ("." in name and key.startswith(f"{name}.")) for name in named)


def _sort_key(value: Any) -> tuple[bool, float, str]:
    """Sort numbers by size, then everything else as text."""
    number = is_number(value)
    return not number, float(value) if number else 0.0, "" if number else str(value)


def as_written(value: Any) -> str:
    """Return a value as it is written on a command line."""
    return printable(value if isinstance(value, str) else json.dumps(value, default=str))


def _format_value(value: Any) -> str:
    if isinstance(value, float):
        return short if float(short := f"{value:g}") == value else repr(value)
    text = f"{value:,}" if is_level(value) and abs(value) >= 10_000 else without_tex(as_written(value))
    return text if len(text) <= 40 else f"{text[:37]}..."
