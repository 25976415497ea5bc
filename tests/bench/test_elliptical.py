"""Cost of a visit for the elliptical bonus."""

import time

import numpy as np
import torch

from cfn.bonuses.elliptical import EllipticalBonus
from cfn.envs.gridworld import Gridworld


def test_a_visit_takes_at_most_three_milliseconds_of_one_core(bench):
    """With 2,048 features of 84x84 images, over whole blocks, so that the factorisations count."""
    torch.set_num_threads(1)
    bonus = EllipticalBonus(Gridworld().observation_space, features=bench.size(2048, 64))
    images = np.random.default_rng(0).integers(0, 256, (bench.size(1024, 70), 1, 84, 84), dtype=np.uint8)
    start = time.process_time()
    for image in images:
        bonus.observe(image)
    milliseconds = 1e3 * (time.process_time() - start) / len(images)
    bench.report(f"elliptical bonus, 84x84 images: {milliseconds:.2f} CPU ms per visit", milliseconds=milliseconds)
    bench.require(milliseconds < 3)
