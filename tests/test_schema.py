"""The constructor as schema: what is imported, and what is said if it cannot be."""

import pytest

from cfn import schema
from cfn.errors import UsageError


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a user's module and return its name; it is forgotten after the test."""
    import importlib
    import sys

    monkeypatch.syspath_prepend(str(tmp_path))

    def write(text, name="users_own"):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        importlib.invalidate_caches()
        return name

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "users_own"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nosuchmodule\n", "ModuleNotFoundError: No module named 'nosuchmodule' (users_own.py, line 1)"),
        ("\n1 / 0\n", "ZeroDivisionError: division by zero (users_own.py, line 2)"),
        ("class X: = 3\n", "SyntaxError: invalid syntax (users_own.py, line 1)"),
        ("raise SystemExit(3)\n", "SystemExit: 3 (users_own.py, line 1)"),  # sys.exit is patched by W&B
        ("class Xx: pass\n", "users_own has no X (did you mean Xx?)"),
        ("raise RuntimeError('two\\nlines')\n", "RuntimeError: two lines (users_own.py, line 1)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_once_with_the_reason(module, caplog, text, message):
    name = module(text)
    with pytest.raises(UsageError) as refused:
        schema.locate("bonus._target_", f"{name}.X")
    assert str(refused.value) == f"bonus._target_=users_own.X cannot be imported: {message}"
    assert "users_own" not in caplog.text


def test_a_module_that_does_not_exist_is_reported_with_a_hint():
    hint = r"there is no module nowhere \(if it is yours, PYTHONPATH must have its folder\)"
    with pytest.raises(UsageError, match=f"^env._target_=nowhere.X cannot be imported: {hint}$"):
        schema.locate("env._target_", "nowhere.X")


def test_modules_inside_packages_and_classes_inside_classes_are_found(module):
    module("", "users_own/__init__")
    module("class Outer:\n    class Inner: pass\n", "users_own/inside")
    assert schema.locate("env._target_", "users_own.inside.Outer.Inner").__name__ == "Inner"


class Further:
    """Takes any keyword."""

    def __init__(self, size: int, *args, seed=0, **kwargs):
        self.all = (size, seed, kwargs)


def test_arguments_are_keys_except_those_that_are_offered():
    named, takes_any = schema.arguments(Further, "env.", offered=("seed",))
    assert (named, takes_any) == ({"size": schema.Argument(int, schema.REQUIRED)}, True)
    assert schema.checked(Further, {"size": 3, "colour": "red"}, "env.") == {"size": 3, "colour": "red"}
    with pytest.raises(UsageError, match=r"^env\.size is not set and has no default: add env\.size=\.\.\."):
        schema.checked(Further, {"colour": "red"}, "env.")


def test_an_unknown_key_names_its_owner():
    assert schema.unknown_key("a", ["b", "c"]) == "a is not a key: the keys are b, c"
    assert schema.unknown_key("bonus.a", [], "bonus=none") == "bonus.a is not a key: bonus=none has no keys"
    assert (
        schema.unknown_key("agent.colour", ["lr"], "agent=mine")
        == "agent.colour is not a key: the keys of agent=mine are lr"
    )
    assert schema.unknown_key("agent.init", ["lr"], "agent=rainbow").endswith(" are lr; it is a key of agent=sac")
    assert "; it is" not in schema.unknown_key("bonus.scale", [], "bonus=none"), "many options have it"
    assert schema.unknown_key("eval.evry", ["every"]).startswith("eval.evry is not a key (did you mean eval.every?)")
