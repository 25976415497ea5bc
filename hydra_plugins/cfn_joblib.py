"""The launcher `joblib` as a Hydra plugin, in place of Hydra's own: Hydra accepts plugins only from this package."""

try:
    from cfn.launch.parallel import ParallelLauncher
except ImportError:  # the extra cfn-rl[joblib] is not installed, and most users do not need it
    from cfn.launch.missing import MissingLauncher as ParallelLauncher


class CfnJoblibLauncher(ParallelLauncher):
    """The option `hydra/launcher=joblib`."""

    extra = "joblib"
