"""Atomic writes: a file has its old content or its new one, whatever happens in between."""

import contextlib
import os
from pathlib import Path

Buffer = bytes | bytearray | memoryview


def write_atomically(path: Path, data: Buffer) -> None:
    """Write a temporary file next to `path`, sync it to disk and rename it to `path`."""
    temporary = path.with_name(path.name + ".new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Sync a folder's list of file names to disk, so that new files survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
