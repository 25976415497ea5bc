"""The keys of a composed config: value, type with range, meaning from the docstring, and origin of the value."""

import inspect
import re
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Len, Lt
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from cfn import schema
from cfn.config import ELSEWHERE, OFFERED, Config
from cfn.errors import UsageError

GROUPS = tuple(OFFERED)
"""Groups whose keys are constructor arguments."""
NOT_SET = "(required)"
"""Shown value of a key without a value."""


class Key(NamedTuple):
    """One key.

    Attributes:
        name: Full key, such as `bonus.alpha`.
        value: Its value, as it would be typed on the command line.
        type: Its type and range.
        meaning: Its explanation in the docstring; empty if there is none.
        origin: Where the value comes from; empty if unknown.
    """

    name: str
    value: str
    type: str
    meaning: str
    origin: str


class Section(NamedTuple):
    """The keys of one owner.

    Attributes:
        title: Owner, such as `bonus=cfn`.
        summary: Sentence that describes the owner.
        keys: Its keys.
        problem: Reason why its keys are unknown; empty if they are known.
    """

    title: str
    summary: str
    keys: list[Key]
    problem: str = ""


@dataclass(frozen=True)
class Composition:
    """A composed config, which may be incomplete.

    Attributes:
        config: Config without Hydra's part.
        choices: Option chosen in each group.
        given: Keys named on the command line.
    """

    config: DictConfig
    choices: Mapping[str, Any]
    given: Collection[str]

    def of_every_run(self) -> Section:
        """Return the keys that every run has."""
        return Section("Keys of every run", "", self._fields(Config, ""))

    def parts_of(self, group: str) -> list[str]:
        """Return the parts of the option chosen in a group, such as `bonus.novelty`, also parts of parts."""
        keys: Any = OmegaConf.to_container(OmegaConf.select(self.config, group) or OmegaConf.create())
        found = [f"{group}.{key}" for key, value in keys.items() if isinstance(value, dict) and "_target_" in value]
        return [part for first in found for part in (first, *self.parts_of(first))]

    def of_group(self, group: str) -> Section:
        """Return the keys of the option chosen in a group or for a part; raise `UsageError` if an unknown key is given.

        Args:
            group: Config group, or full key of a part.
        """
        of_type = group.partition(".")[0]
        title = f"{group}={self.choices.get(group if group == of_type else f'{of_type}@{group}', '?')}"
        path = OmegaConf.select(self.config, f"{group}._target_")
        try:
            if path is None:
                raise UsageError(f"{title} has no _target_: its YAML file must name the class to construct")
            target = schema.locate(f"{group}._target_", path)
            named, takes_any = schema.arguments(target, f"{group}.", OFFERED[of_type])
        except UsageError as error:
            return Section(title, "", [], str(error))
        arguments, meanings = dict(named), explained(target)
        for name in ELSEWHERE.get(group, ()):
            hint = get_type_hints(Config, include_extras=True)[name]
            arguments[name] = schema.Argument(hint, getattr(Config, name))
            meanings[name] = explained(Config)[name]
        parts = self.parts_of(group)
        arguments = {name: argument for name, argument in arguments.items() if f"{group}.{name}" not in parts}
        further = [str(key) for key in OmegaConf.select(self.config, group) if key not in (*arguments, "_target_")]
        further = [key for key in further if f"{group}.{key}" not in parts]
        if further and not takes_any:
            raise UsageError(schema.unknown_key(f"{group}.{further[0]}", arguments, title))
        arguments |= {name: schema.Argument(Any, schema.REQUIRED) for name in further}
        keys = [self._key(f"{group}.{name}", *arguments[name], meanings.get(name, "")) for name in arguments]
        return Section(title, first_sentence(inspect.getdoc(target) or ""), keys)

    def has(self, name: str) -> bool:
        """Return whether the composed config has this key."""
        place, _, last = name.rpartition(".")
        parent = OmegaConf.select(self.config, place) if place else self.config
        return isinstance(parent, DictConfig) and last in parent

    def plain(self, name: str, meaning: str) -> Key:
        """Return a key that is not part of the schema.

        Args:
            name: Full key.
            meaning: Its explanation.
        """
        place, _, last = name.rpartition(".")
        return Key(name, self._value(OmegaConf.select(self.config, place), last), "", meaning, "")

    def _fields(self, owner: type, prefix: str) -> list[Key]:
        """Return the keys that are fields of a dataclass."""
        elsewhere = [name for names in ELSEWHERE.values() for name in names]
        keys: list[Key] = []
        for name, hint in get_type_hints(owner, include_extras=True).items():
            if is_dataclass(hint) and isinstance(hint, type):
                keys += self._fields(hint, f"{prefix}{name}.") if name not in GROUPS else []
            elif name not in elsewhere:
                default = getattr(owner, name, schema.REQUIRED)
                keys.append(self._key(f"{prefix}{name}", hint, default, explained(owner).get(name, "")))
        return keys

    def _key(self, name: str, hint: Any, default: Any, meaning: str) -> Key:
        place, _, last = name.rpartition(".")
        parent = OmegaConf.select(self.config, place) if place else self.config
        value, origin = shown(default), "default of the code; no YAML file sets it"
        if last in parent:
            value, origin = self._value(parent, last), self._origin(name, parent, last)
        elif default is schema.REQUIRED:
            value, origin = NOT_SET, ""
        return Key(name, value, type_text(hint), re.sub(r"\bNone\b", "null", meaning), origin)

    def _value(self, parent: DictConfig, name: str) -> str:
        try:
            value = OmegaConf.select(parent, name, throw_on_missing=True)
            return shown(OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value)
        except MissingMandatoryValue:
            return NOT_SET
        except OmegaConfBaseException:  # refers to a key without a value
            return "?"

    def _origin(self, key: str, parent: DictConfig, name: str) -> str:
        group = key.partition(".")[0]
        if key in self.given:
            return "the command line"
        if OmegaConf.is_interpolation(parent, name):
            source = OmegaConf.to_container(parent)[name].strip("${}")  # type: ignore[call-overload,index]
            return f"{source}, with suite={self.choices['suite']}" if source.startswith("suite.") else str(source)
        return f"{group}={self.choices[group]}" if group in GROUPS and name not in ELSEWHERE.get(group, ()) else ""


def explained(target: Callable[..., Any]) -> dict[str, str]:
    """Return the explanation of each argument, from the sections Args and Attributes of the docstrings."""
    owners = reversed(target.__mro__) if inspect.isclass(target) else [target]
    meanings: dict[str, str] = {}
    for owner in owners:
        for documented in (owner, vars(owner).get("__init__") if inspect.isclass(owner) else None):
            text = inspect.cleandoc(getattr(documented, "__doc__", None) or "") if documented is not None else ""
            for section in re.findall(r"^(?:Args|Attributes):\n((?:(?: .*)?(?:\n|\Z))+)", text, re.M):
                for name, meaning in re.findall(r"^ {4}(\w+)[^:\n]*: (.*(?:\n {5,}.*)*)", section, re.M):
                    meanings[name] = " ".join(meaning.split())
    return meanings


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z`]|null)", paragraph)[0]


def shown(value: Any) -> str:
    """Return a value as it would be typed on the command line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(map(shown, value)) + "]"
    return str(value)


def type_text(hint: Any) -> str:
    """Return a type annotation in words, with its range: `int >= 1 or null`."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _with_range(hint.__origin__, hint.__metadata__)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_text(part) for part in sorted(parts, key=lambda p: p is type(None))))
    if origin is Literal:
        return " | ".join(map(shown, parts))
    if hint is bool:
        return "true | false"
    if hint is type(None):
        return "null"
    if origin is not None and issubclass(origin, Mapping):
        return "mapping"
    if origin is not None and issubclass(origin, Sequence):
        item = type_text(parts[0])
        return f"list of ({item})" if " or " in item else f"list of {item}"
    return {Any: "any", dict: "mapping", list: "list"}.get(hint, getattr(hint, "__name__", str(hint)))


def _with_range(base: Any, constraints: Sequence[Any]) -> str:
    text, low, high = type_text(base), "", ""
    for constraint in constraints:
        match constraint:
            case Ge(bound):
                low = f"{shown(bound)} <="
            case Gt(bound):
                low = f"{shown(bound)} <"
            case Le(bound):
                high = f"<= {shown(bound)}"
            case Lt(bound):
                high = f"< {shown(bound)}"
            case Len(least, most):
                number = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
                text = text.replace("list of", f"list of {number}", 1)
    if low and not high:  # `int >= 1` reads better than `1 <= int`
        bound, sign = low.split()
        return f"{text} {'>=' if sign == '<=' else '>'} {bound}"
    return " ".join(filter(None, (low, text, high)))
