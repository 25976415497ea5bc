import errno
import shutil
from pathlib import Path

import numpy as np
import pytest

from cfn.checkpoints import encoding, store
from cfn.checkpoints.encoding import content_hash
from cfn.checkpoints.store import Checkpoint, Checkpoints
from cfn.errors import UsageError


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(encoding, "LARGE", 1000)
    monkeypatch.setattr(encoding, "CHUNK", 1000)


def parts(step):
    """A state of which some grows, some changes and some stays."""
    return {
        "grows": np.arange(500 + step),
        "changes": np.full(300, step),
        "small": np.full(3, step),
        "stays": {"a": [1, "two", (3.0, None)]},
    }


def same(one, other):
    return (
        all(np.array_equal(one[k], other[k]) for k in ("grows", "changes", "small")) and one["stays"] == other["stays"]
    )


def whole(found):
    return same({name: found.read(name) for name in parts(0)}, parts(found.step))


def test_the_newest_is_found_and_the_oldest_are_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in (10, 20, 30):
        checkpoints.save(step, parts(step))
    assert [path.stem for path in checkpoints.paths] == ["step_000000000020", "step_000000000030"]
    found = Checkpoints(tmp_path).latest()
    assert found.step == 30
    assert whole(found)
    assert whole(Checkpoint(checkpoints.paths[0]))


def test_no_chunk_stays_that_is_not_needed(tmp_path):
    for step in range(0, 100, 10):
        Checkpoints(tmp_path, keep=1).save(step, parts(step))  # a new instance each time, as after a resume
    needed = 1 + -(-590 * 8 // 1000) + -(-300 * 8 // 1000) - 1
    assert len(list((tmp_path / "chunks").iterdir())) <= needed + 1
    assert whole(Checkpoints(tmp_path).latest())


class Killed(BaseException):
    """Stands for SIGKILL: no code catches it."""


@pytest.mark.parametrize("half", [False, True], ids=["between files", "in a file"])
def test_killed_at_any_point_of_writing_the_old_one_is_good(tmp_path, monkeypatch, half):
    """Dies at the first write of a file, then at the second, until it gets through."""
    Checkpoints(tmp_path / "before").save(10, parts(10))
    write, survived, points = encoding.write_atomically, False, 0
    while not survived:
        left = points
        folder = shutil.copytree(tmp_path / "before", tmp_path / str(points))

        def dying(path, data):
            nonlocal left
            if left == 0:
                if half:
                    path.with_name(path.name + ".new").write_bytes(bytes(data[: len(data) // 2]))
                raise Killed
            left -= 1
            write(path, data)

        with monkeypatch.context() as patch:
            patch.setattr(encoding, "write_atomically", dying)
            patch.setattr(store, "write_atomically", dying)
            try:
                Checkpoints(folder).save(20, parts(20))
                survived = True
            except Killed:
                found = Checkpoints(folder).latest()
                assert found.step == 10
                assert whole(found)
        points += 1
        Checkpoints(folder, keep=1).save(30, parts(30))
        assert whole(Checkpoints(folder).latest())
        assert not list(folder.rglob("*.new")), "what the killed one left is gone"
    assert points > 5


def newest_file(folder, which):
    """A file that of two checkpoints only the newer one needs: its `json`, its `bin`, or a `chunk`."""
    checkpoints = Checkpoints(folder)
    checkpoints.save(10, parts(10))
    before = set((folder / "chunks").iterdir())
    checkpoints.save(20, parts(20))
    (chunk, *_) = set((folder / "chunks").iterdir()) - before
    return {"json": checkpoints.paths[-1], "bin": checkpoints.paths[-1].with_suffix(".bin"), "chunk": chunk}[which]


@pytest.mark.parametrize("damage", ["truncated", "altered", "removed"])
@pytest.mark.parametrize("which", ["json", "bin", "chunk"])
def test_a_damaged_file_is_found_and_the_checkpoint_before_is_used(tmp_path, caplog, which, damage):
    path = newest_file(tmp_path, which)
    data = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(data[:-3] if damage == "truncated" else bytes([data[0] ^ 1]) + data[1:])
    found = Checkpoints(tmp_path).latest()
    assert found.step == 10
    assert whole(found)
    if (which, damage) != ("json", "removed"):  # of which there is nothing to warn
        assert "step_000000000020.json is damaged" in caplog.text


def test_if_all_are_broken_there_is_none(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(10, parts(10))
    checkpoints.paths[0].write_text("nothing")
    assert checkpoints.latest() is None


def test_one_of_another_format_is_not_guessed_at(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FORMAT", 99)
    Checkpoints(tmp_path).save(10, parts(10))
    monkeypatch.undo()
    with pytest.raises(
        UsageError, match=r"has format 99, written by cfn .*; this version reads 1: use the version that"
    ):
        Checkpoints(tmp_path).latest()
    assert len(Checkpoints(tmp_path).paths) == 1


def test_what_cannot_be_written_is_told_and_the_last_one_is_good(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)

    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_atomically", full)
    with pytest.raises(
        UsageError, match=r"step 5 could not be written \(No space left on device\); there is no earlier one"
    ):
        checkpoints.save(5, {"a": 1})
    monkeypatch.undo()
    checkpoints.save(10, parts(10))
    monkeypatch.setattr(store, "write_atomically", full)
    with pytest.raises(UsageError, match=r"the previous one, step_000000000010, is intact"):
        checkpoints.save(20, parts(20))
    assert whole(checkpoints.latest())


def test_later_ones_can_be_forgotten(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20):
        checkpoints.save(step, parts(step))
    Checkpoints(tmp_path).remove_after(10)
    assert [path.stem for path in checkpoints.paths] == ["step_000000000010"]
    assert whole(checkpoints.latest())


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.ESTALE], ids=errno.errorcode.get)
@pytest.mark.parametrize("which", ["json", "bin", "chunk"])
def test_what_cannot_be_read_now_is_not_taken_for_broken(tmp_path, monkeypatch, which, code):
    path = newest_file(tmp_path, which)
    read = Path.read_bytes

    def failing(file):
        if file == path:
            raise OSError(code, "it cannot be had")
        return read(file)

    monkeypatch.setattr(Path, "read_bytes", failing)
    with pytest.raises(UsageError, match=r"step_000000000020.json cannot be read \(it cannot be had\); nothing was"):
        Checkpoints(tmp_path).latest()
    monkeypatch.undo()
    assert Checkpoints(tmp_path).latest().step == 20


def test_one_that_is_removed_for_a_newer_one_is_not_taken_for_broken(tmp_path, monkeypatch, caplog):
    """As when a run that keeps one goes on meanwhile."""
    running = Checkpoints(tmp_path, keep=1)
    running.save(10, parts(10))
    chunk = encoding.Reader.chunk

    def later(reader, name, check=True):
        monkeypatch.undo()
        running.save(20, parts(20))
        return chunk(reader, name, check)

    monkeypatch.setattr(encoding.Reader, "chunk", later)
    with pytest.raises(FileNotFoundError, match=r"step_000000000010.json was replaced by a newer checkpoint"):
        Checkpoints(tmp_path).latest()
    assert "damaged" not in caplog.text
    assert Checkpoints(tmp_path).latest().step == 20


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("body", ['{"format": 1, "step": Infinity}', DEEP, f'{{"parts": {DEEP}}}', "5", "[]", "{}"])
def test_a_manifest_that_nobody_here_wrote_is_broken(tmp_path, body):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(10, parts(10))
    manifest = encoding.from_hashed_json(checkpoints.paths[0].read_bytes())
    if "Infinity" in body:
        body = encoding.json.dumps(manifest | {"step": float("inf")})
    odd = tmp_path / "step_000000000020.json"
    odd.write_bytes(content_hash(body.encode()).encode() + b"\n" + body.encode())
    odd.with_suffix(".bin").write_bytes(checkpoints.paths[0].with_suffix(".bin").read_bytes())
    assert Checkpoints(tmp_path).latest().step == 10
    Checkpoints(tmp_path).save(15, parts(15))  # which looks at what the others need
    assert whole(Checkpoint(tmp_path / "step_000000000015.json"))


@pytest.mark.parametrize(("value", "kind"), [({1, 2}, "a set"), (np.array([None]), "an array of object")], ids=str)
def test_a_state_that_cannot_be_saved_is_named_and_the_checkpoint_before_stays(tmp_path, value, kind):
    checkpoints = Checkpoints(tmp_path, keep=1)
    checkpoints.save(10, parts(10))
    with pytest.raises(
        UsageError, match=f"^the state of `bonus` does not fit into a checkpoint: {kind} cannot be saved"
    ):
        checkpoints.save(20, {**parts(20), "bonus": {"seen": value}})
    assert whole(Checkpoints(tmp_path).latest())
    assert Checkpoints(tmp_path).latest().step == 10
