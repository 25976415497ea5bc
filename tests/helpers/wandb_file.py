"""Reading an offline run's `.wandb` file: a LevelDB log of protobuf records behind a header of seven bytes."""

import json
import struct
import time

from wandb.proto.wandb_internal_pb2 import Record

BLOCK = 32768
FULL, FIRST, _MIDDLE, LAST = 1, 2, 3, 4


def records(path):
    data = path.read_bytes()
    assert data[:4] == b":W&B"
    position, parts = 7, []
    while position + 7 <= len(data):
        left = BLOCK - position % BLOCK
        if left < 7:
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + 7])
        if kind == 0 or position + 7 + length > len(data):  # nothing more, or not yet
            break
        parts.append(data[position + 7 : position + 7 + length])
        position += 7 + length
        if kind in (FULL, LAST):
            record = Record()
            record.ParseFromString(b"".join(parts))
            parts = []
            yield record


def wait_for_the_end(path, seconds=60):
    """W&B writes in a process of its own, and may still be at it when a run within this one has ended."""
    deadline = time.monotonic() + seconds
    while not any(record.HasField("exit") for record in records(path)):
        assert time.monotonic() < deadline, "the file never ended"
        time.sleep(0.05)


def history(path):
    """The rows that were logged, without W&B's own keys."""
    for record in records(path):
        if record.HasField("history"):
            row = {}
            for item in record.history.item:
                *parents, name = item.nested_key
                place = row
                for parent in parents:
                    place = place.setdefault(parent, {})
                place[name] = json.loads(item.value_json)
            yield {key: value for key, value in row.items() if not key.startswith("_")}
