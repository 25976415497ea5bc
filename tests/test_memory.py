import logging

import pytest

from cfn import memory
from cfn.errors import BadValueError


def test_what_there_is_is_told():
    there = memory.available()
    assert there is not None
    assert 10**7 < there < 10**14


def test_a_container_has_less(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    whole = memory.available()
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("2000\n")
    assert memory.available() == 3000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available() == pytest.approx(whole, rel=0.2)


def test_what_cannot_fit_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 2**30)
    memory.require("capacity", 1000, 2**30)
    with pytest.raises(
        BadValueError, match=r"4,294,967,296 bytes \(4.0 GB\).*1,073,741,824 \(1.0 GB\): lower capacity"
    ):
        memory.require("capacity", 1000, 2**32)


def test_nothing_is_refused_where_nothing_is_known(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: None)
    memory.require("capacity", 1000, 2**60)


def test_a_buffer_that_may_need_gigabytes_says_so_beforehand(monkeypatch, caplog):
    monkeypatch.setattr(memory, "available", lambda: 2**40)
    with caplog.at_level(logging.INFO):
        memory.require("capacity", 1000, 2**29)
        memory.require("capacity", 20_000_000, 12 * 2**30)
    assert caplog.messages == ["A replay buffer of 20,000,000 entries can grow to 12.0 GB."]
