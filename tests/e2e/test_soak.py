"""A long run: memory that grows a little with every step would end a run of days."""

import pytest
from measuring import resident
from resuming import GRID, SMALL_CFN, claimed

from cfn.training.autosave import Autosave

STEPS, FULL = 200_000, 40_000


@pytest.mark.slow
def test_memory_is_flat_once_the_buffers_are_full(tmp_path, monkeypatch):
    capacities = (f"agent.capacity={FULL // 2}", f"bonus.capacity={FULL // 2}")
    periods = ("agent.update_period=4", "bonus.update_period=4", "eval.every=5000", "checkpoint.every=10000")
    run, training = claimed(tmp_path, *GRID, *SMALL_CFN, *capacities, *periods, f"steps={STEPS}")
    save, sizes = Autosave.__call__, {}

    def watched(autosave, training):
        save(autosave, training)
        sizes[training.step] = resident() / 2**20

    monkeypatch.setattr(Autosave, "__call__", watched)
    training.run(run)
    print({step: round(size) for step, size in sizes.items()})
    full = [size for step, size in sizes.items() if step >= FULL]
    third = len(full) // 3
    assert max(full[-third:]) - max(full[:third]) < 10, sizes
