"""Checkpoints: all that a run is, written whole or not at all, so that it can go on as if nothing had happened.

```
<run>/checkpoints/
  step_000000010000.json   the structure, and the checksums of the rest: a checkpoint is there when this file is
  step_000000010000.bin    small arrays
  chunks/<checksum>        large ones; what did not change since the checkpoint before is not written again
```
"""

import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from cfn import __version__
from cfn.errors import UsageError
from cfn.replay.pixels import Sealed
from cfn.storage import BrokenError, Reader, Writer, chunk_names, digest, from_lines, to_lines
from cfn.writing import settle, write_whole

log = logging.getLogger(__name__)

FORMAT = 1
ODD = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What reading a manifest may raise that nobody here wrote."""


class Checkpoint:
    """One checkpoint, found whole when it is opened.

    One that is not is a `BrokenError`. But if it is only this program that cannot read it, now or ever, that is a
    `UsageError`: an older one must not take its place.

    Args:
        path: Its `.json` file.
    """

    def __init__(self, path: Path) -> None:
        try:
            manifest = from_lines(path.read_bytes())
            if manifest["format"] != FORMAT:
                other = f"is of format {manifest['format']}, of cfn {manifest['cfn']}, and this version reads {FORMAT}"
                raise UsageError(f"{path} {other}: use the version that wrote it")
            small = path.with_suffix(".bin").read_bytes()
            if digest(small) != manifest["small"]:
                raise BrokenError(f"{path.stem}.bin is cut short or altered")
            self._reader = Reader(path.parent / "chunks", small)
            for name in dict.fromkeys(chunk_names(manifest["parts"])):
                self._reader.chunk(name)
            self.step, self.version = int(manifest["step"]), str(manifest["cfn"])
            if path.stem != _name(self.step):
                raise BrokenError(f"it is of step {self.step:,}")
            self._parts: dict[str, Any] = manifest["parts"]
        except (*ODD, FileNotFoundError) as error:
            raise BrokenError(f"{type(error).__name__}: {error}") from error
        except OSError as error:
            raise unreadable(path, error) from error

    def read(self, part: str) -> Any:
        """One part of the run's state."""
        return self._reader.decode(self._parts[part])

    def read_learned(self, part: str) -> Any:
        """One part, of agent or bonus, without the memory that only learning needs."""
        return self._reader.decode({key: value for key, value in self._parts[part].items() if key != "memory"})


class Checkpoints:
    """The checkpoints of a run, of which the last few are kept.

    Args:
        folder: Where they are.
        keep: How many.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder, self._keep = folder, keep
        self._sealed: WeakKeyDictionary[Sealed, list[str]] = WeakKeyDictionary()
        self._used: dict[Path, set[str]] = {}  # the chunks of each checkpoint

    @property
    def paths(self) -> list[Path]:
        """The checkpoints, the newest last."""
        return sorted(path for path in self.folder.glob("step_*.json") if path.stem[len("step_") :].isdecimal())

    def save(self, step: int, parts: Mapping[str, Any]) -> None:
        """Write all parts of the run's state, as they are now, and let the oldest checkpoints go."""
        path = self.folder / f"{_name(step)}.json"
        try:
            (self.folder / "chunks").mkdir(parents=True, exist_ok=True)
            writer = Writer(self.folder / "chunks", self._sealed)
            encoded = {name: writer.encode(part) for name, part in parts.items()}
            write_whole(path.with_suffix(".bin"), writer.small)
            settle(self.folder / "chunks")
            manifest = {"format": FORMAT, "cfn": __version__, "step": step, "small": digest(writer.small)}
            write_whole(path, to_lines(manifest | {"parts": encoded}))
            settle(self.folder)
        except OSError as error:
            left = self.paths
            last = f"the last one, {left[-1].stem}, is good" if left else "there is none before it"
            raise UsageError(
                f"the checkpoint of step {step:,} could not be written ({error.strerror or error}): {last}"
            ) from error
        self._used[path] = writer.used
        self._prune()

    def latest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, if there is any; those that are not are warned of.

        Raises `FileNotFoundError` if one was removed for a newer one while it was read.
        """
        paths = self.paths
        for path in reversed(paths):
            try:
                return Checkpoint(path)
            except BrokenError as error:
                if self.paths != paths:
                    raise FileNotFoundError(f"{path.name} is gone: there is a newer one") from error
                log.warning(f"{path.name} is broken ({error}): the one before it is used, if there is one.")
        return None

    def forget_after(self, step: int) -> None:
        """Let go of checkpoints later than this step: broken, or the run goes another way from here."""
        for path in self.paths:
            if int(path.stem.removeprefix("step_")) > step:
                path.unlink()
        self._prune()

    def _prune(self) -> None:
        """Remove what the checkpoints that are kept do not need."""
        kept = self.paths[-self._keep :]
        needed: set[str] = set()
        for path in kept:
            if path not in self._used:
                try:
                    self._used[path] = set(chunk_names(from_lines(path.read_bytes())["parts"]))
                except (*ODD, OSError, BrokenError):
                    return  # what it needs is not known, so nothing is removed
            needed |= self._used[path]
        names = {file.name for path in kept for file in (path, path.with_suffix(".bin"))}
        with contextlib.suppress(OSError):  # what cannot be removed does no harm
            for file in self.folder.glob("step_*"):
                if file.name not in names:
                    file.unlink()
            for file in (self.folder / "chunks").iterdir():
                if file.name not in needed:
                    file.unlink()


def _name(step: int) -> str:
    return f"step_{step:012}"


def unreadable(path: Path, error: OSError) -> UsageError:
    """A file is there that cannot be read now: whether it is good is not known."""
    return UsageError(f"{path} cannot be read ({error.strerror or error}): nothing was touched, try again when it can")
