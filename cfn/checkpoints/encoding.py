"""Encoding of states: JSON for the structure, raw bytes for arrays, a content hash for every file.

Nothing is ever pickled: a file from a stranger can hold wrong values but cannot execute code. Large arrays are split
into chunks. Each chunk is a file named by its content hash, so a chunk that has not changed since the last checkpoint
already exists and is not written again.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from cfn.checkpoints.stateful import Sealed
from cfn.runs.atomic import Buffer, write_atomically
from cfn.types import Array

LARGE = 2**20
"""Smallest size of an array that is split into chunks, in bytes."""
CHUNK = 2**22
"""Size of a chunk, in bytes."""
TAG = "!"
"""Key that marks a JSON object as something other than a dictionary with string keys."""


class CorruptError(Exception):
    """A file is missing, truncated, altered, or has another format."""


def content_hash(data: Buffer) -> str:
    """Return the content hash."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Writer:
    """Encodes values as JSON. Small arrays are appended to `small`, large arrays are written as chunks.

    Args:
        chunks: Folder of chunks.
        known: Names of the chunks of sealed arrays written earlier.
    """

    def __init__(self, chunks: Path, known: "WeakKeyDictionary[Sealed, list[str]] | None" = None) -> None:
        self._chunks = chunks
        self._known = WeakKeyDictionary() if known is None else known
        self.small = bytearray()
        self.used: set[str] = set()
        """Names of the chunks that the encoded values need."""

    def encode(self, value: Any) -> Any:
        """Return a value in JSON types."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Sealed):
            return self._array(value.data, value)
        if isinstance(value, torch.Tensor):
            # Keep the memory layout: an optimiser steps through a parameter and its moments in memory order.
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
        raise TypeError(f"a {type(value).__name__} cannot be saved: a state_dict may hold plain values and arrays")

    def _array(self, array: Array, sealed: Sealed | None = None) -> dict[str, Any]:
        if array.dtype.kind not in "biuf":
            raise TypeError(f"an array of {array.dtype} cannot be saved: arrays in a state_dict must hold numbers")
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
        name = content_hash(data)
        path = self._chunks / name
        if not path.exists() or path.stat().st_size != len(data):
            write_atomically(path, data)
        return name


class Reader:
    """Decodes values that a `Writer` encoded.

    Args:
        chunks: Folder of chunks.
        small: Bytes of the small arrays.
    """

    def __init__(self, chunks: Path, small: bytes) -> None:
        self._chunks, self._small = chunks, small

    def decode(self, value: Any) -> Any:
        """Return the value that was encoded."""
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
        raise CorruptError(f"unknown kind of value {value[TAG]!r}")

    def _array(self, described: dict[str, Any]) -> Array:
        dtype = np.dtype(described["dtype"])
        if dtype.kind not in "biuf":
            raise CorruptError(f"an array of {dtype} is not allowed")
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
            raise CorruptError(f"an array has {start:,} of {len(data):,} bytes")
        return array

    def chunk(self, name: str, check: bool = True) -> bytes:
        """Return the bytes of a chunk; with `check`, raise `CorruptError` if they do not match its name."""
        if not name.isalnum():
            raise CorruptError(f"{name!r} is not a chunk name")
        data = (self._chunks / name).read_bytes()
        if check and content_hash(data) != name:
            raise CorruptError(f"chunk {name} is truncated or altered")
        return data


def chunk_names(encoded: Any) -> Iterator[str]:
    """Yield the names of all chunks that an encoded value needs."""
    if isinstance(encoded, dict):
        if encoded.get(TAG) == "array":
            yield from encoded.get("chunks", ())
        else:
            yield from chunk_names(list(encoded.values()))
    elif isinstance(encoded, list):
        for item in encoded:
            yield from chunk_names(item)


def to_hashed_json(value: Any) -> bytes:
    """Return a line with the content hash of a value's JSON, followed by that JSON."""
    body = json.dumps(value).encode()
    return content_hash(body).encode() + b"\n" + body


def from_hashed_json(data: bytes) -> Any:
    """Return the value given to `to_hashed_json`, or raise `CorruptError` if the bytes were altered."""
    expected, _, body = data.partition(b"\n")
    if content_hash(body).encode() != expected:
        raise CorruptError("truncated or altered")
    return json.loads(body)
