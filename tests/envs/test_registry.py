import sys

import gymnasium as gym
import pytest

from cfn.envs import registry
from cfn.envs.registry import PACKAGES, Package, find
from cfn.errors import BadValueError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that registers `Toy-Hexapod-v0` and `Toy-Hexapod-v1` when it is imported, and greets."""
    (tmp_path / "toy_robots.py").write_text(
        "import gymnasium\nprint('Hello from the community!')\n"
        "for version in (0, 1):\n"
        "    gymnasium.register(f'Toy-Hexapod-v{version}', entry_point='gymnasium.envs.classic_control:CartPoleEnv')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(gym.registry)
    yield "toy_robots"
    sys.modules.pop("toy_robots", None)
    for id in set(gym.registry) - before:
        del gym.registry[id]


def known(monkeypatch, *packages):
    monkeypatch.setattr(registry, "PACKAGES", packages)


def test_a_well_known_package_is_imported_for_its_ids(package, monkeypatch, capsys):
    known(monkeypatch, Package(package, "toy-robots", "Toy-"))
    assert find("CartPole-v1").id == "CartPole-v1"
    assert package not in sys.modules
    assert find("Toy-Hexapod-v0").id == "Toy-Hexapod-v0"
    assert capsys.readouterr().out == ""


def test_a_function_may_register_the_ids(package, tmp_path, monkeypatch):
    code = (tmp_path / "toy_robots.py").read_text()
    body = "".join(f"    {line}\n" for line in code.splitlines())
    (tmp_path / "toy_robots.py").write_text(f"def register_envs():\n{body}")
    known(monkeypatch, Package(package, "toy-robots", "Toy-", "register_envs"))
    assert find("Toy-Hexapod-v0").id == "Toy-Hexapod-v0"


def test_a_module_without_the_id_is_named(package):
    with pytest.raises(BadValueError, match=r"did you mean toy_robots:Toy-Hexapod-v1, toy_robots:Toy-Hexapod-v0\?"):
        find(f"{package}:Toy-Hexapod-v7")
    with pytest.raises(BadValueError, match="; the import of toy_robots does not register it: correct the id, or call"):
        find(f"{package}:Quite-Another-Thing-v0")


def test_without_a_version_an_id_means_the_newest(package, monkeypatch):
    known(monkeypatch, Package(package, "toy-robots", "Toy-"))
    assert find("Toy-Hexapod").id == "Toy-Hexapod-v1"


def test_an_unknown_package_is_imported_only_by_name(package, monkeypatch):
    with pytest.raises(BadValueError, match=r"write env\.id=MODULE:Toy-Hexapod-v0 with the module to import"):
        find("Toy-Hexapod-v0")
    assert package not in sys.modules
    assert find(f"{package}:Toy-Hexapod-v0").id == "Toy-Hexapod-v0"


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    known(monkeypatch, Package("nosuch_robots.gym", "'nosuch-robots[gym]'", "Toy-"))
    with pytest.raises(BadValueError, match=r"package nosuch_robots, .*: run pip install 'nosuch-robots\[gym\]'"):
        find("Toy-Hexapod-v0")


def test_a_package_without_the_id_is_named(package, monkeypatch):
    known(monkeypatch, Package(package, "toy-robots", "Toy-"))
    with pytest.raises(BadValueError, match="did you mean Toy-Hexapod-v1"):
        find("Toy-Hexapdo-v1")
    with pytest.raises(BadValueError, match="the installed toy_robots does not register it"):
        find("Toy-Quite-Another-Thing-v0")


def test_a_package_that_fails_is_named(package, tmp_path, monkeypatch):
    (tmp_path / "toy_robots.py").write_text("import nosuch_module")
    known(monkeypatch, Package(package, "toy-robots", "Toy-"))
    with pytest.raises(BadValueError, match=r"toy_robots, which cannot be imported .*nosuch_module.*pip install"):
        find("Toy-Hexapod-v0")
    with pytest.raises(
        BadValueError,
        match=r"id: toy_robots:X-v0: toy_robots cannot be imported .*nosuch_module' \(toy_robots.py, line 1\)\)$",
    ):
        find("toy_robots:X-v0")


def test_a_package_that_needs_a_display_is_not_installed_again(package, tmp_path, monkeypatch):
    (tmp_path / "toy_robots.py").write_text("raise OSError('no display')")
    known(monkeypatch, Package(package, "toy-robots", "Toy-"))
    with pytest.raises(BadValueError, match=r"\(OSError: no display\): correct what `python -c 'import toy_robots'`"):
        find("Toy-Hexapod-v0")


@pytest.mark.parametrize(
    ("id", "module"),
    [
        ("PointMaze_UMaze-v3", "gymnasium_robotics"),
        ("FetchReach-v4", "gymnasium_robotics"),
        ("ALE/Breakout-v5", "ale_py"),
        ("BreakoutNoFrameskip-v4", "ale_py"),
        ("MiniGrid-Empty-5x5-v0", "minigrid"),
        ("BabyAI-GoToRedBall-v0", "minigrid"),
        ("highway-fast-v0", "highway_env"),
        ("MinAtar/Breakout-v1", "minatar.gym"),
        ("popgym-RepeatPreviousEasy-v0", "popgym"),
    ],
)
def test_ids_lead_to_their_packages(id, module):
    assert [package.module for package in PACKAGES if registry.re.match(package.ids, id)] == [module]


@pytest.mark.parametrize("id", ["PointMaze_UMaze-v3", "ALE/Breakout-v5"])
def test_dependencies_of_ours_are_found(id):
    assert find(id).id == id


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("NoSuch-v0", "Gymnasium has no environment 'NoSuch-v0'; if a package of yours"),
        ("CartPol-v1", "did you mean CartPole"),
        ("CartPole-v99", "did you mean CartPole-v1"),
        ("Taxi-v3", "did you mean Taxi-v4"),
        ("not an id!", "Gymnasium has no environment 'not an id!'"),
        ("nosuch_module:X-v0", "nosuch_module cannot be imported .*: install it, or add its folder to PYTHONPATH"),
    ],
)
def test_unknown_ids_are_refused(id, message, recwarn):
    with pytest.raises(BadValueError, match=message):
        find(id)
    assert not recwarn.list, "one sentence is enough"


@pytest.mark.parametrize("id", ["", " ", ":", "json:"])
def test_an_id_without_a_name_is_refused(id):
    with pytest.raises(BadValueError, match=f"^id: '{id}' names no environment: write an id of Gymnasium"):
        find(id)


def test_a_module_that_exits_is_told(tmp_path, monkeypatch):
    (tmp_path / "leaving.py").write_text("pass\nraise SystemExit('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        BadValueError, match=r"leaving cannot be imported \(SystemExit: no licence \(leaving.py, line 2"
    ):
        find("leaving:Leaving-v0")
