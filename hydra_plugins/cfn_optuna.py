"""The sweeper `optuna` as a Hydra plugin: Hydra accepts plugins only from the package `hydra_plugins`."""

from cfn.launch.study import StudySweeper


class CfnStudySweeper(StudySweeper):
    """The option `hydra/sweeper=optuna`."""
