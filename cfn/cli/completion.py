"""Shell completion: Hydra completes groups and keys, this module completes commands and hides them from Hydra."""

import os
from collections.abc import Callable, Mapping


def complete(
    arguments: list[str], first_keys: Mapping[str, int | None], run_command: Callable[[str, list[str]], int]
) -> int:
    """Print completions for the line in COMP_LINE, or install them.

    Args:
        arguments: Arguments after `-sc`.
        first_keys: Index of the first argument of each command that is a config key; None: it has no keys. The shell
            itself completes folders.
        run_command: Function that runs a command.
    """
    line = os.environ.get("COMP_LINE", "")
    words = line.split()
    typing_command = len(words) < 2 or (len(words) == 2 and not line.endswith(" "))
    if arguments and arguments[0].startswith("query=") and typing_command:
        prefix = words[1] if len(words) == 2 else ""
        print(" ".join(command for command in first_keys if command.startswith(prefix)))
        return 0
    if len(words) > 1:
        if words[1] not in first_keys:
            return 1
        first_key, given = first_keys[words[1]], len(words) - 3 + line.endswith(" ")
        if first_key is None or given < first_key:  # a folder is typed
            return 0
        for word in words[1 : 2 + first_key]:
            before, _, after = line.partition(f" {word}")
            line = before + after
        os.environ["COMP_LINE"] = line
    return run_command("train", ["-sc", *arguments])
