"""Parts of a bonus: `bonus.novelty=cfn` chooses an option, as `bonus=cfn` does; `bonus.novelty.lr=...` sets its keys.

A YAML file declares its parts in `defaults`, as in `- /bonus@novelty: rnd`. Hydra writes the choice of a part as
`bonus@bonus.novelty=cfn`; this module translates the shorter form.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml


def choosing_parts(words: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """Return the words of a command, with choices of parts translated into Hydra's form.

    Args:
        words: Overrides and flags.
        folders: Folders of configs: this package's, and the user's own.
    """
    parts = set(declared_parts(folders))
    chosen = []
    for word in words:
        key, equals, value = word.partition("=")
        names_option = equals and not value.startswith("{")  # a mapping sets keys of the part
        chosen.append(f"{key.partition('.')[0]}@{word}" if names_option and key in parts else word)
    return chosen


def declared_parts(folders: Sequence[Path]) -> Iterator[str]:
    """Yield the key of every part that a YAML file declares, such as `bonus.novelty`."""
    for folder in folders:
        for path in folder.glob("*/*.yaml"):
            text = path.read_text(encoding="utf-8")
            group = path.parent.name
            if f"/{group}@" not in text:  # parsing all files would take longer than the rest of the command line
                continue
            try:
                defaults = (yaml.safe_load(text) or {}).get("defaults") or []
            except (yaml.YAMLError, AttributeError):  # Hydra reports it
                continue
            names = [name for entry in defaults if isinstance(entry, dict) for name in entry]
            yield from (name.replace(f"/{group}@", f"{group}.") for name in names if name.startswith(f"/{group}@"))
