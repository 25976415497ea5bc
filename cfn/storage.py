"""Nested values as files that are safe to read: JSON for the structure, raw bytes for arrays, a checksum for each.

Nothing is ever pickled, so a file from a stranger can be wrong but cannot run anything. Large arrays are cut into
chunks that are files of their own, named by what is in them: a chunk that has not changed since it was last written is
there already, and is not written again.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from cfn.replay.pixels import Sealed
from cfn.types import Array
from cfn.writing import Buffer, write_whole

LARGE = 2**20
"""Bytes from which on an array is cut into chunks."""
CHUNK = 2**22
"""Bytes of a chunk."""
TAG = "!"
"""The key that tells what a JSON object stands for, if not for a dictionary with plain keys."""


class BrokenError(Exception):
    """A file is missing, cut short or altered, or was never one of these."""


def digest(data: Buffer) -> str:
    """What bytes are known by."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Writer:
    """Turns values into JSON, and their arrays into bytes: small ones into `small`, large ones into chunks.

    Args:
        chunks: The folder of the chunks.
        known: The chunks of sealed arrays that were written before.
    """

    def __init__(self, chunks: Path, known: "WeakKeyDictionary[Sealed, list[str]] | None" = None) -> None:
        self._chunks = chunks
        self._known = WeakKeyDictionary() if known is None else known
        self.small = bytearray()
        self.used: set[str] = set()
        """The names of the chunks that the values need."""

    def encode(self, value: Any) -> Any:
        """The value as JSON can have it."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Sealed):
            return self._array(value.data, value)
        if isinstance(value, torch.Tensor):
            # As it lies in memory, or what is optimised would differ from its moments in the order of its numbers.
            strides = value.stride()
            order = sorted(range(value.ndim), key=lambda i: (-strides[i], i))
            array = value.detach().permute(order).contiguous().cpu().numpy()
            return {TAG: "tensor", "order": order, "array": self._array(array)}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if isinstance(value, tuple):
            return {TAG: "tuple", "items": [self.encode(item) for item in value]}
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if isinstance(value, dict):
            if all(isinstance(key, str) for key in value) and TAG not in value:
                return {key: self.encode(item) for key, item in value.items()}
            return {TAG: "dict", "items": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        raise TypeError(f"a {type(value).__name__} cannot be saved: a state_dict holds plain values and arrays")

    def _array(self, array: Array, sealed: Sealed | None = None) -> dict[str, Any]:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"an array of {array.dtype} cannot be saved: a state_dict's arrays are of numbers")
        described = {TAG: "array", "dtype": array.dtype.str, "shape": list(array.shape)}
        if array.nbytes < LARGE:
            at = len(self.small)
            self.small += array.tobytes()
            return described | {"at": at}
        names = self._known.get(sealed) if sealed else None
        if names is None:
            data = np.ascontiguousarray(array).data.cast("B")
            names = [self._chunk(data[start : start + CHUNK]) for start in range(0, len(data), CHUNK)]
            if sealed:
                self._known[sealed] = names
        self.used.update(names)
        return described | {"chunks": names}

    def _chunk(self, data: memoryview) -> str:
        name = digest(data)
        path = self._chunks / name
        if not path.exists() or path.stat().st_size != len(data):
            write_whole(path, data)
        return name


class Reader:
    """Turns what a `Writer` made back into values.

    Args:
        chunks: The folder of the chunks.
        small: The bytes of the small arrays.
    """

    def __init__(self, chunks: Path, small: bytes) -> None:
        self._chunks, self._small = chunks, small

    def decode(self, value: Any) -> Any:
        """The value that JSON stands for."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        match value.get(TAG):
            case None:
                return {key: self.decode(item) for key, item in value.items()}
            case "tuple":
                return tuple(self.decode(item) for item in value["items"])
            case "dict":
                return {self.decode(key): self.decode(item) for key, item in value["items"]}
            case "array":
                return self._array(value)
            case "tensor":
                array, order = self._array(value["array"]), value["order"]
                return torch.from_numpy(array).permute([order.index(i) for i in range(len(order))])
        raise BrokenError(f"there is no kind of value {value[TAG]!r}")

    def _array(self, described: dict[str, Any]) -> Array:
        dtype = np.dtype(described["dtype"])
        if dtype.kind not in "biuf":
            raise BrokenError(f"an array of {dtype}")
        array = np.empty(described["shape"], dtype)
        data = array.reshape(-1).view(np.uint8).data
        if "at" in described:
            data[:] = self._small[described["at"] : described["at"] + len(data)]
            return array
        start = 0
        for name in described["chunks"]:
            chunk = self.chunk(name, check=False)
            data[start : start + len(chunk)] = chunk
            start += len(chunk)
        if start != len(data):
            raise BrokenError(f"an array has {start:,} of {len(data):,} bytes")
        return array

    def chunk(self, name: str, check: bool = True) -> bytes:
        """The bytes of a chunk; if they are checked, only if they are what they were."""
        if not name.isalnum():
            raise BrokenError(f"{name!r} is not the name of a chunk")
        data = (self._chunks / name).read_bytes()
        if check and digest(data) != name:
            raise BrokenError(f"{name} is cut short or altered")
        return data


def chunk_names(encoded: Any) -> Iterator[str]:
    """The names of all chunks that an encoded value needs."""
    if isinstance(encoded, dict):
        if encoded.get(TAG) == "array":
            yield from encoded.get("chunks", ())
        else:
            yield from chunk_names(list(encoded.values()))
    elif isinstance(encoded, list):
        for item in encoded:
            yield from chunk_names(item)


def to_lines(value: Any) -> bytes:
    """JSON, below a line with its checksum."""
    body = json.dumps(value).encode()
    return digest(body).encode() + b"\n" + body


def from_lines(data: bytes) -> Any:
    """What `to_lines` was given, if nothing was altered since."""
    checksum, _, body = data.partition(b"\n")
    if digest(body).encode() != checksum:
        raise BrokenError("it is cut short or altered")
    return json.loads(body)
