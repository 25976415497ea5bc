"""Launcher for options of `hydra/launcher` whose packages are missing: raises an error that names them."""

from typing import Any, ClassVar

from hydra.plugins.launcher import Launcher

from cfn.errors import UsageError


class MissingLauncher(Launcher):
    """Refuses to launch anything.

    Attributes:
        extra: Extra of this package that brings the missing ones.
    """

    extra: ClassVar[str] = "slurm"

    def __init__(self, **_: Any) -> None:
        raise UsageError(f"hydra/launcher={self.extra} needs further packages: pip install 'cfn-rl[{self.extra}]'")

    def setup(self, **_: Any) -> None:
        """Do nothing: the constructor raises an error."""

    def launch(self, *_: Any) -> list[Any]:
        """Do nothing: the constructor raises an error."""
        return []
