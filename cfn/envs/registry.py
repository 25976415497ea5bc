"""Finding an environment by its Gymnasium id, also in packages that are installed but were not imported."""

import contextlib
import difflib
import importlib
import io
import re
from importlib.util import find_spec
from typing import NamedTuple

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec, find_highest_version, get_env_id, parse_env_id

from cfn.envs.mujoco import register_tasks
from cfn.errors import FAULTS, BadValueError, UsageError, needs_extra, one_line
from cfn.schema import import_problem


class Package(NamedTuple):
    """A package that registers environments when it is imported.

    Attributes:
        module: Module to import.
        pip: Argument of `pip install`.
        ids: Regular expression for the beginning of its ids.
        function: Function of the module that registers the ids; empty: the import does.
    """

    module: str
    pip: str
    ids: str
    function: str = ""

    @property
    def top(self) -> str:
        """Name of the top-level module."""
        return self.module.partition(".")[0]


PACKAGES = (
    Package(
        "gymnasium_robotics",
        "gymnasium-robotics",
        "Fetch|Hand(Reach|Manipulate)|AdroitHand|PointMaze_|AntMaze_|FrankaKitchen-",
    ),
    Package("ale_py", "ale-py", r"ALE/|\w+NoFrameskip-v"),
    Package("minigrid", "minigrid", "MiniGrid-|BabyAI-"),
    Package("minatar.gym", "MinAtar", "MinAtar/", "register_envs"),
    Package("popgym", "popgym", "popgym-"),
    Package("miniworld", "miniworld", "MiniWorld-"),
    Package("minihack", "minihack", "MiniHack-"),
    Package("vizdoom.gymnasium_wrapper", "vizdoom", "Vizdoom"),
    Package("metaworld", "metaworld", "Meta-World/"),
    Package("panda_gym", "panda-gym", "Panda(Reach|Slide|Push|PickAndPlace|Stack|Flip)"),
    Package("shimmy", "'shimmy[dm-control]'", "dm_control/"),
    Package(
        "highway_env",
        "highway-env",
        "(exit|highway|intersection|lane-keeping|merge|parking|racetrack|roundabout|two-way|u-turn)-",
    ),
)
"""Well-known packages. The config of a stranger can cause the import of these, and of no others."""


def find(id: str) -> EnvSpec:
    """Return the registered environment; raise `BadValueError` for the key `id` if there is none.

    Args:
        id: Gymnasium id; without a version, the newest. `module:id` imports the module first.
    """
    module, _, name = id.partition(":") if ":" in id else ("", "", id)
    if not name.strip():
        raise BadValueError("id", f"{id!r} names no environment: write an id of Gymnasium, such as env.id=CartPole-v1")
    if module:
        _import_module(id, module)
    package = None if module or name in gym.registry else _import_package(name)
    spec = gym.registry.get(name) or _newest_version(name)
    if spec is None:
        close = [f"{module}:{other}" if module else other for other in _similar(name)]
        if close:
            advice = f"did you mean {', '.join(close)}?"
        elif module:
            advice = f"the import of {module} does not register it: correct the id, or call gymnasium.register there"
        elif package:
            advice = f"the installed {package.top} does not register it: run pip install --upgrade {package.pip}"
        else:
            advice = f"if a package of yours registers it, write env.id=MODULE:{name} with the module to import"
        raise BadValueError("id", f"Gymnasium has no environment {id!r}; {advice}")
    return spec


def register_games() -> None:
    """Register ALE's ids, and hide its banner."""
    with needs_extra("paper"):
        import ale_py  # slow to import, and most environments do not need it

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gym.register_envs(ale_py)


def _import_module(id: str, module: str) -> None:
    try:
        importlib.import_module(module)
    except FAULTS as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
        reason = one_line(error) if missing else import_problem(error)
        hint = ": install it, or add its folder to PYTHONPATH" if missing else ""
        raise BadValueError("id", f"{id}: {module} cannot be imported ({reason}){hint}") from error


def _import_package(name: str) -> Package | None:
    """Import and return the well-known package with this id, if there is one; raise `BadValueError` if this fails."""
    package = next((package for package in PACKAGES if re.match(package.ids, name)), None)
    if package is None:
        return None
    if find_spec(package.top) is None:
        raise BadValueError(
            "id", f"{name} needs the package {package.top}, which is not installed: run pip install {package.pip}"
        )
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):  # hides notices
            _register(package)
    except UsageError:
        raise
    except FAULTS as error:
        other = f"correct what `python -c 'import {package.module}'` reports"
        advice = f"run pip install {package.pip}" if isinstance(error, ImportError) else other
        raise BadValueError(
            "id", f"{name} needs the package {package.top}, which cannot be imported ({one_line(error)}): {advice}"
        ) from error
    return package


def _register(package: Package) -> None:
    if package.module == "gymnasium_robotics":
        register_tasks()
    elif package.module == "ale_py":
        register_games()
    else:
        module = importlib.import_module(package.module)
        if package.function:
            getattr(module, package.function)()


def _similar(name: str) -> list[str]:
    """Return up to five registered ids that resemble a name."""
    return difflib.get_close_matches(name, gym.registry, n=5, cutoff=0.6)


def _newest_version(name: str) -> EnvSpec | None:
    """Return the newest version of an id without a version."""
    try:
        namespace, base, version = parse_env_id(name)
    except gym.error.Error:  # not a valid id
        return None
    newest = find_highest_version(namespace, base) if version is None else None
    return None if newest is None else gym.registry[get_env_id(namespace, base, newest)]
