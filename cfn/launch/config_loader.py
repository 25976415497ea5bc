"""Hydra's loader of configs, for commands that do not run `hydra.main`: help, benchmarks and exams."""

from pathlib import Path

from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.utils import setup_globals

from cfn.config import CONF
from cfn.errors import UsageError


def config_loader(config_dir: str | None) -> ConfigLoaderImpl:
    """Return a loader of the configs of this package and of a folder of the user's own.

    Args:
        config_dir: The user's folder (`--config-dir`); None: there is none.
    """
    search_path = create_config_search_path(str(CONF))
    if config_dir:
        if not Path(config_dir).is_dir():
            raise UsageError(f"--config-dir {config_dir}: there is no such folder")
        folder = f"file://{Path(config_dir).absolute()}"
        search_path.prepend("command-line", folder, anchor=SearchPathQuery(provider="schema"))
    version.setbase("1.3")
    setup_globals()
    return ConfigLoaderImpl(search_path)
