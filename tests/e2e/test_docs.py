"""The documentation agrees with the project: commands, keys, metrics, links, pictures, tests and versions."""

import ast
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml
from composing import composed
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import OmegaConf

import cfn as package
from cfn.cli.exam import checked, own_keys
from cfn.cli.main import COMMANDS, main
from cfn.config import CONF, OFFERED
from cfn.exam.report_card import require_questions
from cfn.launch.config_loader import config_loader
from cfn.launch.parts import declared_parts
from cfn.launch.sweeper import combinations

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
        *DOCS.glob("*.md"),
        DOCS / "api" / "index.md",
    ]
}
CONFIGURATION, EXTENDING = PAGES["docs/configuration.md"], PAGES["docs/extending.md"]


def commands(name):
    """The arguments of every `cfn <name>` command of all pages, without comments and line breaks."""
    text = "\n".join(PAGES.values()).replace("\\\n", " ")
    found = re.findall(rf"(?:^|`)(?:PYTHONPATH=\. )?cfn {name}(?= |`|$)([^`\n]*)", text, re.M)
    return sorted({" ".join(arguments.split("#")[0].split()) for arguments in found})


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def slugs(text):
    """The anchors of a page's headings, as GitHub and MyST form them."""
    headings = re.findall(r"^#+ (.+)$", without_code(text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def flat(values, prefix):
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        elif not key.startswith("_") and key != "defaults":
            yield f"{prefix}{key}"


# Commands


TRAIN = [command for command in commands("train") if not re.search(r"--config-dir|--help|\.\.\.", command)]


def test_the_commands_were_found():
    assert {"", "bonus=none", "env=gym env.id=CartPole-v1", "experiment=gridworld_counts preset=mini"} <= set(TRAIN)
    assert len(TRAIN) > 30


@pytest.mark.parametrize("command", TRAIN)
def test_every_training_command_composes(command):
    """The first run of it, if it is a sweep."""
    words = [word for word in shlex.split(command) if word not in ("-m", "--cfg", "job", "--resolve")]
    composed(*(re.sub(r"(=[^,\[({]*),.*", r"\1", word) for word in words))


@pytest.mark.parametrize("command", commands("exam"))
def test_every_exam_command_composes(command):
    words = shlex.split(command)
    if "--config-dir" in words or "NAME" in command:
        return
    own, overrides = own_keys([word for word in words if "=" in word])
    require_questions(own["questions"])
    loader = config_loader(None)
    for job in combinations(OverridesParser.create(config_loader=loader).parse_overrides(overrides)):
        checked(loader.load_configuration("exam", job, RunMode.RUN))


@pytest.mark.parametrize("command", [command for command in commands("bench") if "key=value" not in command])
def test_every_benchmark_command_composes(command):
    composed(*(word for word in shlex.split(command) if "=" in word))


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "train"])
def test_every_command_is_documented_and_its_options_exist(name, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["cfn", name, "--help"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert commands(name), "some page shows it"
    used = {word for command in commands(name) for word in command.split() if word.startswith("--")}
    assert [option for option in used if option not in text] == []


def test_every_nox_session_exists():
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    sessions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list}
    named = re.findall(r"nox -s ([a-z ]+)", "\n".join(PAGES.values()))
    assert {session for names in named for session in names.split()} <= sessions


def test_contributors_and_nox_install_all_extras():
    """`EVERYTHING`, the package with its extras, is what all sessions with tests and the website install."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    assigned = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    everything = ast.literal_eval(assigned["EVERYTHING"])
    assert f"pip install -e '{everything}' -c constraints.txt" in PAGES["CONTRIBUTING.md"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(everything.removeprefix(".[").removesuffix("]").split(",")) == set(extras)


def test_the_examples_of_own_parts_run_and_resume(cfn, run_folders, tmp_path):
    for body in re.findall(r"^```(?:python|yaml)\n(# .*?)^```", EXTENDING, re.S | re.M):
        path = tmp_path / re.match(r"# ([\w./]+)", body).group(1)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(body)
    (train,) = [command for command in commands("train") if "env=corridor" in command]
    done = cfn("train", *shlex.split(train), PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    (folder,) = run_folders()
    assert (folder / "eval.csv").read_text() == "2000,1.0\n", "as the page says"
    (resume,) = [command for command in commands("resume") if "mine.Corridor" in command]
    trusted = shlex.split(resume)[1:]
    done = cfn("resume", str(folder), "steps=2500", *trusted, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr


# Keys and metrics


def keys_of_the_configs():
    for group in ("env", "agent", "bonus", "tracker"):
        for path in (CONF / group).glob("*.yaml"):
            yield from flat(yaml.safe_load(path.read_text(encoding="utf-8")), f"{group}.")
    yield from declared_parts([CONF])
    yield from flat(yaml.safe_load((CONF / "base.yaml").read_text(encoding="utf-8")), "")


def test_every_key_is_explained():
    keys = set(keys_of_the_configs())
    assert len(keys) > 60
    assert sorted(key for key in keys if f"`{key}`" not in CONFIGURATION) == []


def test_every_explained_key_exists():
    explained = set(re.findall(r"^\| `((?:env|agent|bonus|tracker|eval|checkpoint)\.\w+)`", CONFIGURATION, re.M))
    assert explained - set(keys_of_the_configs()) == set()


def test_every_option_of_every_group_is_named():
    groups = ("env", "agent", "bonus", "tracker", "experiment", "preset", "suite")
    options = {path.stem for group in groups for path in (CONF / group).glob("*.yaml")}
    assert sorted(option for option in options if not re.search(rf"[`=]{option}`", CONFIGURATION)) == []


def test_every_metric_is_explained():
    """Metric names are string constants of the package."""
    metrics = set()
    for path in (ROOT / "cfn").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                metrics.update(re.findall(r"^(?:train|eval|bonus|agent|explore|speed)/\w+$", node.value))
    explained = set(re.findall(r"^\| `(\w+/\w+)` \|", CONFIGURATION, re.M))
    assert len(metrics) > 12
    assert explained == metrics


def test_the_values_of_the_suites_are_those_of_the_configs():
    with initialize_config_dir(str(CONF), version_base="1.3"):
        suites = {path.stem: compose(f"suite/{path.stem}") for path in (CONF / "suite").glob("*.yaml")}
    shown = set()
    for table in re.findall(r"^\| key \|.*?\n\n", CONFIGURATION, re.S | re.M):
        header, _, *rows = [
            [cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.split("\n")[:-2]
        ]
        for key, *cells in rows:
            if not key.startswith("suite."):
                continue
            shown.add(key)
            for name, cell in zip(header[1:], cells, strict=True):
                if cell in ("by task", "by size", "by version", "1 or null"):  # its values are tested elsewhere
                    value = cell
                    table, _, leaf = key.rpartition(".")
                    assert OmegaConf.is_interpolation(OmegaConf.select(suites[name], table), leaf)
                else:
                    value = OmegaConf.select(suites[name], key)
                assert _number(cell) == _number(value), f"{key} of {name}"
    keys = set(flat(OmegaConf.to_container(suites["generic"]), ""))
    assert shown == {key for key in keys if not key.startswith("suite.search.")}


def test_the_searched_values_are_those_of_the_configs():
    with initialize_config_dir(str(CONF), version_base="1.3"):
        suites = {path.stem: compose(f"suite/{path.stem}").suite.search for path in (CONF / "suite").glob("*.yaml")}
    (table,) = re.findall(r"^\| searched \|.*?\n\n", CONFIGURATION, re.S | re.M)
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")[:-2]]
    shown = {}
    for name, first, *others in rows:
        for names, cell in zip(header[1:], (first, *others), strict=True):
            same = cell.replace("as `generic`", first).replace("the same", first)
            values = {k: _values(v) for k, v in re.findall(r"`(\w+)` ([^;]+)", same)}
            for suite in re.findall(r"`(\w+)`", names):
                shown.setdefault(suite, {})[name.strip("`").removeprefix("suite.search.")] = values
    for suite, searched in shown.items():
        expected = {owner: {k: list(v) for k, v in keys.items()} for owner, keys in suites[suite].items()}
        assert {owner: keys for owner, keys in searched.items() if keys} == expected, suite


def _values(cell):
    return [yaml.safe_load(word) if word.strip() in ("true", "false") else float(word) for word in cell.split(",")]


def _number(value):
    """A cell of the table, or a value, in a form in which the two can be compared."""
    if isinstance(value, str):
        try:
            return float(value.replace(",", ""))
        except ValueError:
            value = yaml.safe_load(value)
    elif OmegaConf.is_list(value):
        value = list(value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def test_every_argument_that_the_loop_offers_is_named():
    for group, arguments in OFFERED.items():
        (row,) = re.findall(rf"^\| `{group}` \| (.+) \|$", EXTENDING, re.M)
        assert row == ", ".join(f"`{argument}`" for argument in arguments)


# Links, pictures, files and tests


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_resolves(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(PAGES[page])):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        path = ((ROOT / page).parent / name).resolve() if name else ROOT / page
        assert path.is_file(), target
        if anchor:
            assert anchor in slugs(path.read_text(encoding="utf-8")), target


def test_every_picture_is_shown():
    shown = set()
    for page, text in PAGES.items():
        pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
        shown |= {((ROOT / page).parent / picture).resolve() for picture in pictures}
    assert shown == set((DOCS / "figures").iterdir())


def test_every_named_file_exists():
    for page, text in PAGES.items():
        if page == "CHANGELOG.md":  # may name files of the past
            continue
        for name in re.findall(r"`((?:cfn|conf|docs|tests)/[\w./-]*)(?:::\w+)?`", text):
            assert (ROOT / name).exists() or name == "docs/_build/html", f"{name} in {page}"


def test_every_cited_test_exists():
    cited = re.findall(r"`(tests/[\w./]+\.py)::(\w+)`", "\n".join(PAGES.values()))
    assert len(cited) > 25
    for path, name in cited:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"


def test_every_choice_of_the_published_runs_has_a_test_and_none_is_unknown():
    page = PAGES["docs/results.md"]
    tables = [re.search(rf"^\| choice \| {second}.*?(?=\n\n)", page, re.S | re.M) for second in ("paper's", "tests")]
    choices, tested = (
        [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.group().split("\n")[2:]]
        for table in tables
    )
    assert [row[0] for row in choices] == [row[0] for row in tested]
    assert len(choices) > 20
    assert all(row[1].startswith("`tests/") for row in tested)
    assert not any("unknown" in cell for row in choices for cell in row)
    keys = set(re.findall(r"`((?:agent|bonus|env|suite)\.[\w.]+|\w+_clip|steps)`", " ".join(row[4] for row in choices)))
    explained = set(re.findall(r"`([\w.]+)`", CONFIGURATION))
    assert keys <= explained, keys - explained


def test_every_page_is_part_of_the_site():
    index = PAGES["docs/index.md"]
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", index, re.M), page


# Versions


def pinned(name):
    return re.search(rf"^{name}==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M).group(1)


def test_versions_agree():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"ruff==([\d.]+)", hooks)) == {pinned("ruff")}
    assert set(re.findall(r"torch==([\d.]+)", "\n".join(PAGES.values()))) == {pinned("torch")}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == package.__version__


def test_ci_runs_every_supported_python():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == supported
