"""The rules of docs/design.md that a machine can check: who imports whom, docstrings, names of files."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cfn

ROOT = Path(cfn.__file__).parent
BASE = ("__init__", "__version__", "errors", "types", "seeding", "naming", "numbers", "schema", "config")
BASE += ("stop_signals",)
PARTS = ("base", "nn", "runs", "checkpoints", "replay", "envs", "agents", "bonuses", "wrappers")
PARTS += ("tracking", "training", "exam", "launch", "analysis", "cli", "__main__")
MAY_IMPORT_ANALYSIS = ("cfn.analysis", "cfn.cli", "cfn.launch", "cfn.tracking.pictures")
MODULES = {
    ".".join(("cfn", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def part_of(module):
    name = [*module.split("."), "__init__"][1]
    return "base" if name in BASE else name


def imports_of(module):
    """The names that a module imports, anywhere in it: by a statement, or by a call with a name."""
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{absolute(module, node)}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and name_of(node.func) in ("import_module", "__import__"):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def absolute(module, node):
    """The module that `from ... import` names; `from .` counts the folders above the importing file."""
    if not node.level:
        return node.module
    parts = module.split(".") + ["__init__"] * (MODULES[module].name == "__init__.py")
    return ".".join([*parts[: -node.level], *([node.module] if node.module else [])])


def name_of(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def may_import(importer, imported):
    """The import rule: upwards in the list only, with three tightenings."""
    mine, theirs = part_of(importer), part_of(imported)
    if theirs == "analysis":
        return importer.startswith(MAY_IMPORT_ANALYSIS)
    if mine == "analysis":
        return theirs in ("base", "runs")
    if {mine, theirs} <= {"envs", "agents", "bonuses"}:
        return mine == theirs
    return PARTS.index(theirs) <= PARTS.index(mine)


@pytest.mark.parametrize("module", MODULES)
def test_a_part_imports_only_parts_above_it(module):
    if module == "cfn":  # the public interface; it imports a name when the name is first used
        return
    ours = [name for name in imports_of(module) if name.split(".")[0] == "cfn"]
    assert [name for name in ours if not may_import(module, name)] == []


@pytest.mark.parametrize(
    ("statement", "importer"),
    [
        ("from cfn.training.loop import Training", "cfn.tracking.base"),
        ("import cfn.cli.main", "cfn.launch.sweeper"),
        ("from cfn.agents import sac", "cfn.bonuses.rnd"),
        ("from cfn.bonuses.base import Bonus", "cfn.envs.batch"),
        ("from cfn.nn import device", "cfn.analysis.stats"),
        ("from cfn.analysis.stats import mean", "cfn.training.evaluation"),
        ("from cfn.analysis import stats", "cfn.tracking.console"),
        ("from cfn.training import visit_counts", "cfn.wrappers.payment"),
        ("from cfn.exam import streams", "cfn.training.loop"),
        ("from cfn.launch import threads", "cfn.exam.streams"),
        ("from ..training.loop import Training", "cfn.tracking.base"),
        ("from ..agents import sac", "cfn.bonuses"),
        ("import_module('cfn.cli.main')", "cfn.runs.lock"),
        ("def f():\n    import cfn.training.loop", "cfn.replay.coins"),
    ],
)
def test_a_violation_is_found(monkeypatch, statement, importer):
    monkeypatch.setitem(TREES, importer, ast.parse(statement))
    with pytest.raises(AssertionError):
        test_a_part_imports_only_parts_above_it(importer)


@pytest.mark.process
def test_training_imports_neither_matplotlib_nor_analysis():
    """Not even through another package, and not while a run is trained."""
    done = subprocess.run([sys.executable, "-c", TRAINED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["trained"]


TRAINED = f"""
import logging, pathlib, sys, tempfile
sys.path.insert(0, {str(Path(__file__).parent / "helpers")!r})
from resuming import GRID, SMALL_CFN, claimed
logging.disable()
with tempfile.TemporaryDirectory() as folder:
    run, training = claimed(pathlib.Path(folder) / "run", *GRID, *SMALL_CFN, "steps=60", "eval.every=30")
    training.run(run)
print("trained", *(name for name in sys.modules if name == "matplotlib" or name.startswith("cfn.analysis")))
"""


def test_only_analysis_and_the_pictures_import_matplotlib():
    drawing = {module for module in TREES if any("matplotlib" in name for name in imports_of(module))}
    assert {module for module in drawing if not module.startswith("cfn.analysis")} == {"cfn.tracking.pictures"}


def test_every_public_function_and_class_has_a_docstring():
    """`state_dict` and `load_state_dict` are documented once, in `cfn.checkpoints.stateful`."""
    missing = [
        f"{module}.{node.name}"
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and node.name not in ("state_dict", "load_state_dict")
        and node in public_members(tree)
        and not ast.get_docstring(node)
    ]
    assert missing == []


def public_members(tree):
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [*tree.body, *(member for owner in classes for member in owner.body)]


FILES = ("metrics.jsonl", "summary.json", "train.log", "runs.json", "study.db", "queue.lock", "overrides.yaml")
"""Names that only files of runs and sweeps have."""
FOLDERS = (
    ".hydra",
    "lock",
    "counts",
    "plots",
    "rooms",
    "checkpoints",
    "videos",
    "wandb",
    "tensorboard",
    "trackio",
    "chunks",
)
FOLDERS += ("sweeps", "errors", "jobs", "config.yaml", "hydra.yaml")
"""Names that have other meanings, too: they count where a path is made of them."""
PATH_CALLS = ("Path", "joinpath", "with_name", "glob", "rglob")


def spelled_names(tree):
    """The file names of `FILES` in strings, and of `FOLDERS` in paths, without docstrings."""
    documented = [
        node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    prose = {id(node.value) for node in documented}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield from (name for name in FILES if name in node.value)
        parts = [node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else []
        parts += node.args if isinstance(node, ast.Call) and name_of(node.func) in PATH_CALLS else []
        texts = [text.value for part in parts for text in ast.walk(part) if isinstance(text, ast.Constant)]
        yield from (name for text in texts for name in FOLDERS if name in str(text).split("/"))


def test_only_the_layout_spells_the_files_of_a_run():
    spelled = {module: set(spelled_names(tree)) for module, tree in TREES.items()}
    assert {*FILES, *FOLDERS} - spelled.pop("cfn.runs.layout") == {"sweeps", "jobs"}, (
        "all but two constants are used in it"
    )
    assert spelled.pop("cfn.cli.plot") == {"plots"}, "the folder of `cfn plot`, which is not part of a run"
    assert {module: names for module, names in spelled.items() if names} == {}


@pytest.mark.parametrize(
    "statement",
    [
        'path = folder / "counts"',
        'path = folder / f"videos/{step}.mp4"',
        'path = Path(folder, "plots")',
        'paths = folder.rglob("checkpoints/*")',
        'NAME = "summary.json"',
        'open(f"{folder}/metrics.jsonl")',
    ],
)
def test_a_spelled_name_is_found(statement):
    assert len(list(spelled_names(ast.parse(statement)))) == 1


def test_modules_are_short_enough_to_read():
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: length for module, length in lengths.items() if length > 320} == {}
