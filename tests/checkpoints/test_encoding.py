import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cfn.checkpoints import encoding
from cfn.checkpoints.encoding import (
    CorruptError,
    Reader,
    Writer,
    chunk_names,
    content_hash,
    from_hashed_json,
    to_hashed_json,
)
from cfn.replay.pixels import Sealed


def through(value, folder):
    """Written and read again."""
    writer = Writer(folder)
    encoded = from_hashed_json(to_hashed_json(writer.encode(value)))
    assert set(chunk_names(encoded)) == writer.used
    return Reader(folder, bytes(writer.small)).decode(encoded)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KEYS = st.text() | st.integers()
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner) | st.lists(inner).map(tuple),
    max_leaves=20,
)


@given(VALUES)
def test_plain_values_come_back_as_they_were(tmp_path_factory, value):
    again = through(value, tmp_path_factory.getbasetemp())
    assert again == value
    assert repr(again) == repr(value), "tuples as tuples, numbers as numbers"


@given(arrays.arrays(arrays.scalar_dtypes().filter(lambda t: t.kind in "biuf"), arrays.array_shapes(min_dims=0)))
def test_arrays_come_back_as_they_were(tmp_path_factory, array):
    again = through({"a": array}, tmp_path_factory.getbasetemp())["a"]
    assert (again.dtype, again.shape, again.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_not_a_number_and_infinity_come_back(tmp_path):
    nan, infinity = through([math.nan, math.inf], tmp_path)
    assert math.isnan(nan)
    assert infinity == math.inf


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_tensors_lie_in_memory_as_before(tmp_path, layout):
    tensor = torch.randn(4, 3, 5, 6).to(memory_format=layout)
    again = through(tensor, tmp_path)
    assert torch.equal(again, tensor)
    assert again.stride() == tensor.stride()


def test_states_of_generators_and_optimisers_come_back(tmp_path):
    rng = np.random.default_rng(0)
    parameter = torch.nn.Parameter(torch.randn(3))
    optimizer = torch.optim.Adam([parameter], 0.1)
    parameter.grad = torch.ones(3)
    optimizer.step()
    state = {"rng": rng.bit_generator.state, "optimizer": optimizer.state_dict(), "torch": torch.get_rng_state()}
    again = through(state, tmp_path)
    other = np.random.default_rng(1)
    other.bit_generator.state = again["rng"]
    assert other.random() == rng.random()
    optimizer.load_state_dict(again["optimizer"])
    torch.set_rng_state(again["torch"])


def test_large_arrays_are_chunks_that_are_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "LARGE", 1000)
    monkeypatch.setattr(encoding, "CHUNK", 4000)
    array = np.arange(2500)
    assert (through(array, tmp_path) == array).all()
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(files) == 5
    array[-1] = 7
    assert (through(array, tmp_path) == array).all()
    assert len(list(tmp_path.iterdir())) == 6, "only the last chunk is another"
    assert all(path.stat().st_mtime_ns == before for path, before in files.items())


def test_sealed_bytes_are_not_even_looked_at_again(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "LARGE", 1000)
    known = {}
    sealed = Sealed(np.arange(5000).astype(np.uint8))
    first = Writer(tmp_path, known).encode([sealed])
    monkeypatch.setattr(encoding, "content_hash", None)
    second = Writer(tmp_path, known)
    assert second.encode([sealed]) == first
    assert second.used


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, np.array([object()]), np.array(["text"]), b"bytes"],
    ids=["object", "set", "objects", "texts", "bytes"],
)
def test_what_is_not_plain_cannot_be_saved(tmp_path, value):
    with pytest.raises(TypeError, match="cannot be saved"):
        Writer(tmp_path).encode(value)


@pytest.mark.parametrize(
    "encoded",
    [
        {"!": "array", "dtype": "|O", "shape": [1], "at": 0},
        {"!": "array", "dtype": "<i8", "shape": [1], "chunks": ["../secret"]},
        {"!": "array", "dtype": "<i8", "shape": [100], "chunks": []},
        {"!": "call", "what": "os.system"},
    ],
    ids=["objects", "elsewhere", "short", "call"],
)
def test_files_that_nobody_here_wrote_are_refused(tmp_path, encoded):
    with pytest.raises(CorruptError):
        Reader(tmp_path, b"").decode(encoded)


def test_a_chunk_that_was_altered_is_found(tmp_path):
    name = content_hash(b"good")
    (tmp_path / name).write_bytes(b"evil")
    with pytest.raises(CorruptError, match="truncated or altered"):
        Reader(tmp_path, b"").chunk(name)


def test_lines_that_were_altered_are_found():
    data = to_hashed_json({"steps": 10})
    assert from_hashed_json(data) == {"steps": 10}
    for bad in (data[:-1], data.replace(b"10", b"11"), json.dumps({"steps": 10}).encode(), b""):
        with pytest.raises(CorruptError):
            from_hashed_json(bad)
