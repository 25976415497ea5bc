"""The constructor is the schema: the arguments of a class (or function) are config keys, their annotations the types.

A new environment, agent, bonus or tracker is checked without further code. Every error names its full key.

An argument annotated with an abstract class is a part: another component of the same group, such as `bonus.global` of
`bonus=product`. It is built first, and the constructor receives the object. A key that is a word of Python has an
argument with an underscore: the key `global` is the argument `global_`.
"""

import difflib
import importlib
import importlib.util
import inspect
import keyword
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeGuard, TypeVar, get_args, get_type_hints

import yaml
from pydantic import TypeAdapter, ValidationError

from cfn.errors import FAULTS, BadValueError, UsageError, one_line

_HERE = Path(__file__).resolve().parent
CONF = _HERE / "conf" if (_HERE / "conf").is_dir() else _HERE.parent / "conf"
"""Folder of the configs: inside the package if installed from a wheel, at the top level in a checkout."""

Kind = TypeVar("Kind")

REQUIRED = inspect.Parameter.empty
"""Default of an argument that has none."""


class Argument(NamedTuple):
    """One argument of a constructor.

    Attributes:
        hint: Its annotation; Any if there is none.
        default: Its default, or `REQUIRED`.
    """

    hint: Any
    default: Any


@dataclass(frozen=True)
class Component:
    """The option chosen in one group: its class and its checked keys."""

    group: str
    name: str
    target: Callable[..., Any]
    keys: dict[str, Any]

    def build(self, **offered: Any) -> Any:
        """Construct it from its keys and from those of the offered arguments that its constructor names."""
        parameters = inspect.signature(self.target).parameters
        values = {name: offered[name] for name in parameters.keys() & offered.keys()}
        names = {key_of(name): name for name in parameters}
        for key, value in self.keys.items():
            values[names.get(key, key)] = value.build(**_for_part(key, offered)) if _is_part(value) else value
        try:
            return self.target(**values)
        except BadValueError as error:
            raise UsageError(f"{self.group}.{error.key}: {error.sentence}") from error
        except TypeError as error:
            raise UsageError(f"{self.group}={self.name} cannot be constructed: {error}") from error
        except SystemExit as error:
            raise UsageError(f"{self.group}={self.name} cannot be constructed: {one_line(error)}") from error

    def make(self, kind: type[Kind], **offered: Any) -> Kind:
        """Construct it; raise `UsageError` if the result is not an object of this kind."""
        made = self.build(**offered)
        if not isinstance(made, kind):
            base = f"{kind.__module__}.{kind.__name__}"
            raise UsageError(f"{self.group}={self.name} is a {type(made).__name__}: it must be derived from {base}")
        return made


def _is_part(value: Any) -> TypeGuard[Component]:
    return isinstance(value, Component)


def _for_part(key: str, offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offered arguments of a part: the same, but with a seed of its own."""
    from cfn import seeding  # imports NumPy, which help and completion do not need

    return {**offered, **({"seed": seeding.integer(offered["seed"], key)} if "seed" in offered else {})}


def key_of(argument: str) -> str:
    """Return the config key of an argument: `global` of `global_`, which would otherwise be a word of Python."""
    return argument[:-1] if argument.endswith("_") and keyword.iskeyword(argument[:-1]) else argument


def component(
    group: str,
    name: str,
    values: Any,
    offered: Collection[str] = (),
    elsewhere: Collection[str] = (),
    parts: Mapping[str, str] | None = None,
) -> Component:
    """Return a checked component; raise `UsageError` with the key if its class or a value is wrong.

    Args:
        group: Config group.
        name: Option chosen in it.
        values: Keys of the option, with `_target_`.
        offered: Arguments that are not keys, because the program passes them.
        elsewhere: Keys of the group that are not arguments and not in `values`.
        parts: Option chosen for each part, by its full key.
    """
    if not isinstance(values, dict) or "_target_" not in values:
        raise UsageError(without_target(group, name))
    keys = dict(values)
    target = locate(f"{group}._target_", str(keys.pop("_target_")))
    for key, argument in arguments(target, f"{group}.", offered)[0].items():
        if key in keys and _is_class_of_parts(argument.hint):
            keys[key] = _part(f"{group}.{key}", keys[key], offered, parts or {})
    return Component(group, name, target, checked(target, keys, f"{group}.", offered, f"{group}={name}", elsewhere))


def _part(key: str, values: Any, offered: Collection[str], parts: Mapping[str, str]) -> Component:
    """Return a checked part; its key is its group."""
    if not isinstance(values, dict):
        group = key.partition(".")[0]
        raise UsageError(f"{key}={values}: should be a {group} with a _target_, chosen as {group}@{key}=NAME")
    return component(key, parts.get(key, "?"), values, offered, parts=parts)


def _is_class_of_parts(hint: Any) -> bool:
    """Return whether an annotation is an abstract class, such as `Bonus`, whose options are classes with keys."""
    return inspect.isabstract(hint)


def locate(key: str, path: str) -> Callable[..., Any]:
    """Return the class or function at a dotted path; raise `UsageError` with the key if it cannot be imported."""
    try:
        found = _imported(path)
    except _MissingError as error:
        raise UsageError(f"{key}={path} cannot be imported: {error}") from error
    except FAULTS as error:
        raise UsageError(f"{key}={path} cannot be imported: {import_problem(error)}") from error
    if not callable(found):
        raise UsageError(f"{key}={path} is not a class or a function")
    return found  # type: ignore[no-any-return]


class _MissingError(Exception):
    """A part of a dotted path does not exist."""


def _imported(path: str) -> Any:
    """Return the object at a dotted path."""
    place, *names = path.split(".")
    if place not in sys.modules and importlib.util.find_spec(place) is None:
        raise _MissingError(f"there is no module {place} (if it is yours, PYTHONPATH must have its folder)")
    found: Any = importlib.import_module(place)
    for name in names:
        is_package = isinstance(found, ModuleType) and hasattr(found, "__path__")
        if not hasattr(found, name) and is_package and importlib.util.find_spec(f"{place}.{name}"):
            importlib.import_module(f"{place}.{name}")
        if not hasattr(found, name):
            close = difflib.get_close_matches(name, dir(found), n=1)
            raise _MissingError(f"{place} has no {name}" + (f" (did you mean {close[0]}?)" if close else ""))
        place, found = f"{place}.{name}", getattr(found, name)
    return found


def import_problem(error: BaseException) -> str:
    """Return an error raised by an import, with the line of the user's file that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    file, line, reason = Path(frames[-1].filename), frames[-1].lineno, str(error)
    if isinstance(error, SyntaxError) and error.filename:
        file, line, reason = Path(error.filename), error.lineno, error.msg
    where = f" ({file.name}, line {line})" if file != Path(__file__) else ""
    return " ".join(f"{type(error).__name__}: {reason}{where}".split())


def arguments(
    target: Callable[..., Any], prefix: str, offered: Collection[str] = ()
) -> tuple[dict[str, Argument], bool]:
    """Return the arguments of a constructor that are config keys, and whether it takes any other keyword as well.

    Args:
        target: Class or function.
        prefix: Beginning of its keys, for the error message.
        offered: Arguments that are not keys.
    """
    try:
        hints = get_type_hints(target.__init__ if inspect.isclass(target) else target, include_extras=True)
    except (NameError, TypeError, AttributeError):  # annotations that cannot be evaluated
        hints = {}
    try:
        parameters = inspect.signature(target).parameters
    except ValueError as error:
        raise UsageError(f"{prefix}_target_: {target} has no readable signature, so its keys are unknown") from error
    named = {
        key_of(name): Argument(hints.get(name, Any), parameter.default)
        for name, parameter in parameters.items()
        if name not in offered and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    return named, any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def checked(
    target: Callable[..., Any],
    values: Mapping[str, Any],
    prefix: str,
    offered: Collection[str] = (),
    owner: str = "",
    elsewhere: Collection[str] = (),
) -> dict[str, Any]:
    """Check values against the arguments of `target`, and return them with the annotated types.

    Args:
        target: Class or function.
        values: Values by argument.
        prefix: Beginning of the keys.
        offered: Arguments that are not keys.
        owner: Name of the keys' owner in messages; empty: the prefix.
        elsewhere: Further keys with this prefix, checked elsewhere.
    """
    named, takes_any = arguments(target, prefix, offered)
    for name in values:
        if name not in named and not takes_any:
            raise UsageError(unknown_key(prefix + name, [*named, *elsewhere], owner))
    for name, argument in named.items():
        if name not in values and argument.default is REQUIRED:
            raise UsageError(not_set(prefix + name))
    hints = {name: named[name].hint if name in named else Any for name in values}
    return {name: checked_value(prefix + name, hints[name], value) for name, value in values.items()}


def checked_value(key: str, hint: Any, value: Any) -> Any:
    """Return a value converted to its annotated type; raise `UsageError` with the key if that is impossible."""
    if isinstance(value, Component):
        return value  # checked by its own class
    if isinstance(hint, type) and is_dataclass(hint):
        if isinstance(value, hint):
            return value
        if not isinstance(value, dict):
            raise UsageError(f"{key}={value}: should be a group of keys ({', '.join(f.name for f in fields(hint))})")
        return hint(**checked(hint, value, key + "."))
    try:
        result = TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        wanted = dict.fromkeys(_wanted(problem["type"], problem["msg"]) for problem in error.errors())
        null = ", or null" if type(None) in get_args(hint) else ""
        raise UsageError(f"{key}={value}: should {' or '.join(wanted).replace(' or be ', ' or ')}{null}") from error
    if isinstance(value, bool) and not isinstance(result, bool):
        raise UsageError(f"{key}={value}: should be a number, not true or false")
    return result


def _wanted(problem: str, message: str) -> str:
    """Return what a value should be, from the type and the message of Pydantic's error."""
    if problem.startswith("bool_"):
        return "be true or false"
    return re.sub("^(Input|Value) should | after validation|, unable to parse string as .*", "", message)


def not_set(key: str) -> str:
    """Return a sentence on a key without a value."""
    return f"{key} is not set and has no default: add {key}=... to the command"


def _options_with(owner: str, key: str) -> list[str]:
    """Return the other options of the owner's group whose YAML files list a key."""
    group, _, option = owner.partition("=")
    files = sorted((CONF / group).glob("*.yaml")) if group.isidentifier() else []
    contents = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) or {} for file in files}
    return [f"{group}={name}" for name, keys in contents.items() if key in keys and name != option]


def without_target(group: str, name: str) -> str:
    """Return a sentence on an option whose YAML file names no class."""
    return f"{group}={name} has no _target_: its YAML file must name the class to construct"


def unknown_key(key: str, known: Iterable[Any], owner: str = "") -> str:
    """Return a sentence on a key that does not exist, with the keys that do.

    Args:
        key: The key.
        known: Names of the keys beside it.
        owner: Owner of these keys; empty: the group in the key.
    """
    *parents, name = key.split(".")
    where = owner or ".".join(parents)
    options = sorted(str(option) for option in known if option != "_target_")
    close = difflib.get_close_matches(name, options, n=1)
    guess = f" (did you mean {'.'.join([*parents, close[0]])}?)" if close else ""
    others = [] if close else _options_with(owner, name)
    elsewhere = f"; it is a key of {', '.join(others)}" if 0 < len(others) <= 3 else ""
    if not options:
        return f"{key} is not a key: {where} has no keys{elsewhere}"
    return f"{key} is not a key{guess}: the keys {f'of {where} ' if where else ''}are {', '.join(options)}{elsewhere}"
