"""What a visit costs the elliptical bonus; on an otherwise idle machine."""

import time

import numpy as np
import pytest
import torch

from cfn.bonuses.elliptical import EllipticalBonus
from cfn.envs.gridworld import Gridworld


@pytest.mark.bench
def test_a_visit_takes_at_most_three_milliseconds_of_one_core():
    """With 2,048 features of 84x84 images, over whole blocks, so that the factorisations count."""
    torch.set_num_threads(1)
    bonus = EllipticalBonus(Gridworld().observation_space, features=2048)
    images = np.random.default_rng(0).integers(0, 256, (1024, 1, 84, 84), dtype=np.uint8)
    start = time.process_time()
    for image in images:
        bonus.observe(image)
    milliseconds = 1e3 * (time.process_time() - start) / len(images)
    print(f"{milliseconds:.2f} ms per visit")
    assert milliseconds < 3
