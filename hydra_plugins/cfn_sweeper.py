"""The sweeper of `cfn train -m` as a Hydra plugin: Hydra accepts plugins only from the package `hydra_plugins`."""

from cfn.launch.sweeper import Sweeper


class CfnSweeper(Sweeper):
    """The option `hydra/sweeper=cfn`, the default."""
