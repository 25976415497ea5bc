"""The folder of checkpoints: each is written atomically, checked when it is opened, and removed when newer ones exist.

```
<run>/checkpoints/
  step_000000010000.json   manifest: structure, small values, content hashes; its existence makes a checkpoint complete
  step_000000010000.bin    small arrays
  chunks/<content hash>    large arrays; chunks shared with the previous checkpoint are not written again
```
"""

import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from cfn import __version__
from cfn.checkpoints.encoding import (
    CorruptError,
    Reader,
    Writer,
    chunk_names,
    content_hash,
    from_hashed_json,
    to_hashed_json,
)
from cfn.checkpoints.stateful import Sealed
from cfn.errors import UsageError
from cfn.runs.atomic import sync_folder, write_atomically
from cfn.runs.layout import CheckpointLayout, step_of

log = logging.getLogger(__name__)

FORMAT = 1
MANIFEST_ERRORS = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""Errors raised when a manifest has an unexpected structure."""


class Checkpoint:
    """One checkpoint. Opening it checks the content hash of every file.

    Raises `CorruptError` if a file is damaged; the caller may then use an older checkpoint. Raises `UsageError` if the
    files may be intact but cannot be read now (disk error) or by this version; an older checkpoint must not replace it.

    Args:
        manifest: Path of the manifest.
    """

    def __init__(self, manifest: Path) -> None:
        try:
            content = from_hashed_json(manifest.read_bytes())
            if content["format"] != FORMAT:
                found = f"has format {content['format']}, written by cfn {content['cfn']}; this version reads {FORMAT}"
                raise UsageError(f"{manifest} {found}: use the version that wrote it")
            arrays = CheckpointLayout.small_arrays(manifest)
            small = arrays.read_bytes()
            if content_hash(small) != content["small"]:
                raise CorruptError(f"{arrays.name} is truncated or altered")
            self._reader = Reader(CheckpointLayout(manifest.parent).chunks, small)
            for name in dict.fromkeys(chunk_names(content["parts"])):
                self._reader.chunk(name)
            self.step, self.version = int(content["step"]), str(content["cfn"])
            if manifest != CheckpointLayout(manifest.parent).manifest(self.step):
                raise CorruptError(f"it holds step {self.step:,}")
            self._parts: dict[str, Any] = content["parts"]
            _upgrade(self._parts)
        except (*MANIFEST_ERRORS, FileNotFoundError) as error:
            raise CorruptError(f"{type(error).__name__}: {error}") from error
        except OSError as error:
            raise unreadable(manifest, error) from error

    def read(self, part: str) -> Any:
        """Return the state of one part of the run."""
        return self._reader.decode(self._parts[part])

    def read_learned(self, part: str) -> Any:
        """Return the state of the agent or the bonus without its replay buffer (the key `memory`)."""
        return self._reader.decode({key: value for key, value in self._parts[part].items() if key != "memory"})


class Checkpoints:
    """All checkpoints of a run; the newest few are kept.

    Args:
        folder: Folder of checkpoints.
        keep: Number of checkpoints to keep.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self._files, self._keep = CheckpointLayout(folder), keep
        self._sealed: WeakKeyDictionary[Sealed, list[str]] = WeakKeyDictionary()
        self._chunks_of: dict[Path, set[str]] = {}  # chunk names needed, by manifest

    @property
    def paths(self) -> list[Path]:
        """Manifests, oldest first."""
        return self._files.manifests()

    def save(self, step: int, parts: Mapping[str, Any]) -> None:
        """Write a checkpoint and remove the oldest ones.

        Args:
            step: Agent steps so far.
            parts: State of each part of the run.
        """
        manifest = self._files.manifest(step)
        try:
            self._files.chunks.mkdir(parents=True, exist_ok=True)
            writer = Writer(self._files.chunks, self._sealed)
            encoded = {name: _encoded(name, part, writer) for name, part in parts.items()}
            write_atomically(CheckpointLayout.small_arrays(manifest), writer.small)
            sync_folder(self._files.chunks)
            content = {"format": FORMAT, "cfn": __version__, "step": step, "small": content_hash(writer.small)}
            write_atomically(manifest, to_hashed_json(content | {"parts": encoded}))
            sync_folder(self._files.folder)
        except OSError as error:
            left = self.paths
            last = f"the previous one, {left[-1].stem}, is intact" if left else "there is no earlier one"
            raise UsageError(
                f"the checkpoint of step {step:,} could not be written ({error.strerror or error}); {last}"
            ) from error
        self._chunks_of[manifest] = writer.used
        self._prune()

    def latest(self) -> Checkpoint | None:
        """Return the newest intact checkpoint, or None; log a warning for each damaged one.

        Raises `FileNotFoundError` if a checkpoint was replaced by a newer one while it was read.
        """
        paths = self.paths
        for path in reversed(paths):
            try:
                return Checkpoint(path)
            except CorruptError as error:
                if self.paths != paths:
                    raise FileNotFoundError(f"{path.name} was replaced by a newer checkpoint") from error
                log.warning(f"{path.name} is damaged ({error}): using the previous checkpoint, if there is one.")
        return None

    def remove_after(self, step: int) -> None:
        """Remove checkpoints later than a step: they are damaged, or the run continues differently from here."""
        for path in self.paths:
            if (step_of(path) or 0) > step:
                path.unlink()
        self._prune()

    def _prune(self) -> None:
        """Remove the files that the kept checkpoints do not need."""
        kept = self.paths[-self._keep :]
        needed: set[str] = set()
        for path in kept:
            if path not in self._chunks_of:
                try:
                    self._chunks_of[path] = set(chunk_names(from_hashed_json(path.read_bytes())["parts"]))
                except (*MANIFEST_ERRORS, OSError, CorruptError):
                    return  # its chunks are unknown, so no chunk may be removed
            needed |= self._chunks_of[path]
        names = {file.name for path in kept for file in (path, CheckpointLayout.small_arrays(path))}
        with contextlib.suppress(OSError):  # a file that cannot be removed does no harm
            for file in self._files.files():
                if file.name not in names:
                    file.unlink()
            for file in self._files.chunks.iterdir():
                if file.name not in needed:
                    file.unlink()


def _encoded(name: str, part: Any, writer: Writer) -> Any:
    """Return the encoded state of a part; raise `UsageError` if it holds a value that cannot be saved."""
    try:
        return writer.encode(part)
    except TypeError as error:  # from the state_dict of a user's own class
        raise UsageError(f"the state of `{name}` does not fit into a checkpoint: {error}") from error


def _upgrade(parts: dict[str, Any]) -> None:
    """Convert the encoded parts of a checkpoint written by an earlier version."""
    counts = parts.get("truth", {})
    if "coin_sums" in counts:  # the visit counts kept them before the coin-flip bonus did
        parts["bonus"]["tally"] = {"states": counts["states"], "sums": counts.pop("coin_sums")}


def unreadable(path: Path, error: OSError) -> UsageError:
    """Return the error for a file that exists but cannot be read now, and so may be intact."""
    return UsageError(f"{path} cannot be read ({error.strerror or error}); nothing was changed: try again later")
