import logging
import re
from pathlib import Path

import pytest
from composing import composed

import cfn
from cfn.config import CONF
from cfn.errors import BadValueError, UsageError
from cfn.nn import memory_limits
from cfn.training.loop import Training

DOCS = Path(__file__).parents[2] / "docs"


def test_what_there_is_is_told():
    there = memory_limits.available()
    assert there is not None
    assert 10**7 < there < 10**14


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Control groups that are only folders: makes one, of version 1 or 2, with a limit and what is taken of it."""
    monkeypatch.setattr(memory_limits, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory_limits, "OWN", tmp_path / "own")

    def make(folder, names, limit, taken, stat=""):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / names[0]).write_text(f"{limit}\n")
        (tmp_path / folder / names[1]).write_text(f"{taken}\n")
        (tmp_path / folder / "memory.stat").write_text(f"anon 7\n{stat}")

    return make


def test_a_container_has_less(groups, tmp_path):
    whole = memory_limits.available()
    memory_limits.OWN.write_text("0::/\n")
    groups(".", memory_limits.NEW_NAMES, 5000, 2000)
    assert memory_limits.available() == 3000
    (tmp_path / "memory.stat").unlink()
    assert memory_limits.available() == 3000
    groups(".", memory_limits.NEW_NAMES, "max", 2000)
    assert memory_limits.available() == pytest.approx(whole, rel=0.2)


def test_so_has_a_batch_job_whose_limit_lies_in_a_group_within_others(groups):
    memory_limits.OWN.write_text("0::/slurm/job_7/step_0\n")
    groups("slurm/job_7/step_0", memory_limits.NEW_NAMES, "max", 100)
    groups("slurm/job_7", memory_limits.NEW_NAMES, 5000, 3000, "inactive_file 1500\nactive_file 9\n")
    groups("slurm", memory_limits.NEW_NAMES, 9000, 3000)
    groups("other", memory_limits.NEW_NAMES, 50, 0)
    assert memory_limits.available() == 3500, "files that were read long ago make room"


def test_so_has_one_in_groups_of_the_old_kind(groups):
    memory_limits.OWN.write_text("9:name=systemd:/else\n4:cpu,memory:/slurm/job_7\n0::/\n")
    groups("memory", memory_limits.OLD_NAMES, 2**63 - 4096, 3000)
    groups("memory/slurm/job_7", memory_limits.OLD_NAMES, 5000, 3000, "inactive_file 1\ntotal_inactive_file 1500\n")
    assert memory_limits.available() == 3500
    memory_limits.OWN.write_text("4:memory:/of/the/host/that/a/container/does/not/see\n")
    groups("memory", memory_limits.OLD_NAMES, 4000, 3000)
    assert memory_limits.available() == 1000


def test_what_cannot_fit_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(memory_limits, "available", lambda: 2**30)
    memory_limits.require("capacity", 1000, 2**30)
    with pytest.raises(
        BadValueError, match=r"4,294,967,296 bytes \(4.0 GiB\).*1,073,741,824 \(1.0 GiB\): lower capacity"
    ):
        memory_limits.require("capacity", 1000, 2**32)


def test_nothing_is_refused_where_nothing_is_known(monkeypatch):
    monkeypatch.setattr(memory_limits, "available", lambda: None)
    memory_limits.require("capacity", 1000, 2**60)


def test_a_buffer_that_may_need_gigabytes_says_so_beforehand(caplog):
    with caplog.at_level(logging.INFO):
        memory_limits.announce(2**29)
        memory_limits.announce(12 * 2**30)
    assert caplog.messages == ["The replay buffers can grow to 12.0 GiB."]


def test_what_fits_one_by_one_but_not_together_is_refused(monkeypatch):
    monkeypatch.setattr(memory_limits, "available", lambda: 3 * 2**30)
    memory_limits.require_together({"agent.capacity": 2**30, "bonus.capacity": 2**31})
    with pytest.raises(
        UsageError,
        match=r"agent.capacity \(2.0 GiB\) and bonus.capacity \(2.0 GiB\) together can grow beyond the 3.0 GiB",
    ):
        memory_limits.require_together({"agent.capacity": 2**31, "bonus.capacity": 2**31})


def test_what_cannot_be_filled_need_not_fit(monkeypatch):
    monkeypatch.setattr(memory_limits, "available", lambda: 10_000)
    assert memory_limits.require_buffer(1000, entry=4, frame=6, steps=None) == 10_000
    assert memory_limits.require_buffer(10**6, entry=4, frame=6, steps=500) == 5000
    for capacity, steps in ((1001, None), (10**6, 1001)):
        with pytest.raises(BadValueError, match=r"can grow to 10,010 bytes"):
            memory_limits.require_buffer(capacity, entry=4, frame=6, steps=steps)


@pytest.mark.parametrize("capacity", [10**15, 10**30])
def test_but_it_is_reserved(capacity):
    with pytest.raises(
        BadValueError, match=r"entries can grow to [\d,]+ bytes, more than the operating system can reserve"
    ):
        memory_limits.require_buffer(capacity, entry=40, frame=6, steps=1)


@pytest.mark.thorough
def test_the_documentation_has_the_numbers_that_a_run_announces(monkeypatch, caplog):
    monkeypatch.setattr(memory_limits, "available", lambda: 2**40)
    config, _ = composed("env=montezuma", "bonus=cfn", "tracker=none")
    training = Training(config)
    agent, bonus = training.agent.full_bytes, training.bonus.full_bytes
    with caplog.at_level(logging.INFO, memory_limits.log.name):
        memory_limits.announce(agent + bonus)
    announced = re.search(r"[\d.]+ GiB", caplog.messages[-1])[0]
    page = (DOCS / "montezuma.md").read_text()
    assert f"its replay buffers can need ({announced})" in page
    assert f"2e7 states | at most {bonus / 2**30:.1f} GiB" in page
    assert f"1e6 transitions | at most {agent / 2**30:.1f} GiB" in page
    assert f"up to {announced} of replay buffers" in (DOCS / "getting-started.md").read_text()


def test_memory_is_in_binary_units_everywhere():
    code, readme = Path(cfn.__file__).parent, DOCS.parent / "README.md"
    places = [readme, *DOCS.glob("*.md"), *code.rglob("*.py"), *CONF.rglob("*.yaml")]
    decimal = [
        f"{path.name}: {line}"
        for path in places
        for line in path.read_text().splitlines()
        if re.search(r"\b[kKMGT]B\b", line) and "the paper reserves 160 GB" not in line
    ]
    assert decimal == []
