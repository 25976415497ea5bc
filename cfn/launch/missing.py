"""A launcher in place of `hydra/launcher=slurm` where its packages are missing: it raises an error that names them."""

from typing import Any

from hydra.plugins.launcher import Launcher

from cfn.errors import UsageError


class MissingLauncher(Launcher):
    """Refuses to launch anything."""

    def __init__(self, **_: Any) -> None:
        raise UsageError("hydra/launcher=slurm needs further packages: pip install 'cfn-rl[slurm]'")

    def setup(self, **_: Any) -> None:
        """Do nothing: the constructor raises an error."""

    def launch(self, *_: Any) -> list[Any]:
        """Do nothing: the constructor raises an error."""
        return []
