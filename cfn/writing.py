"""Files that are written whole or not at all."""

import contextlib
import os
from pathlib import Path

Buffer = bytes | bytearray | memoryview


def write_whole(path: Path, data: Buffer) -> None:
    """Write a file beside its place and move it there: whatever happens, it is there as it was or as it will be."""
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def settle(folder: Path) -> None:
    """Have the names of a folder's new files on the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
