"""The rules of docs/design.md that a machine can check: who imports whom, docstrings, names of files."""

import ast
from pathlib import Path

import pytest

import cfn

ROOT = Path(cfn.__file__).parent
BASE = ("__init__", "__version__", "errors", "types", "seeding", "naming", "schema", "config")
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


def imports_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


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
    ours = [name for name in imports_of(TREES[module]) if name.split(".")[0] == "cfn"]
    assert [name for name in ours if not may_import(module, name)] == []


def test_only_analysis_and_the_pictures_import_matplotlib():
    drawing = {module for module, tree in TREES.items() if any("matplotlib" in name for name in imports_of(tree))}
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


def test_only_the_layout_spells_the_files_of_a_run():
    names = {".hydra", "metrics.jsonl", "summary.json", "train.log", "lock", "counts", "plots", "rooms", "checkpoints"}
    names |= {"videos", "wandb", "tensorboard", "chunks", "sweeps"}
    spelled = [
        f"{module}, line {node.lineno}"
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and isinstance(node.right, ast.Constant)
        and node.right.value in names
    ]
    assert {place.partition(",")[0] for place in spelled} == {"cfn.runs.layout"}


def test_modules_are_short_enough_to_read():
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert {module: length for module, length in lengths.items() if length > 320} == {}
