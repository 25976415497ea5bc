"""The launchers `slurm` and `slurm_local` as Hydra plugins: Hydra accepts plugins only from this package."""

try:
    from cfn.launch.slurm import LocalLauncher, SlurmLauncher
except ImportError:  # the extra cfn-rl[slurm] is not installed, and most users do not need it
    from cfn.launch.missing import MissingLauncher as LocalLauncher
    from cfn.launch.missing import MissingLauncher as SlurmLauncher


class CfnSlurmLauncher(SlurmLauncher):
    """The option `hydra/launcher=slurm`."""


class CfnLocalLauncher(LocalLauncher):
    """The option `hydra/launcher=slurm_local`."""
