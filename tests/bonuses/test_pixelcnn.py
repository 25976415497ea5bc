import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, VECTORS, image

from cfn.bonuses.pixelcnn import LEVELS, PixelCNN, PixelCNNBonus
from cfn.errors import UsageError

SIDE = 42


def test_each_pixel_depends_only_on_those_before_it():
    torch.manual_seed(0)
    net = PixelCNN(SIDE)
    levels = torch.randint(LEVELS, (1, SIDE, SIDE))
    logits = []
    net.head[-1].register_forward_hook(lambda module, inputs, output: logits.append(output.detach()))
    net(levels)
    for row, column in [(0, 0), (0, 41), (20, 17), (41, 41)]:
        changed = levels.clone()
        changed[0, row, column] = (changed[0, row, column] + 3) % LEVELS
        logits[1:] = []
        net(changed)
        moved = (logits[0] != logits[1]).any(dim=1)[0].flatten().numpy()
        assert not moved[: row * SIDE + column + 1].any(), "neither those before it nor itself"
        if (row, column) == (20, 17):
            assert moved[row * SIDE + column + 1 :].any()


def test_it_is_a_density():
    """Over one pixel, all else fixed, the probabilities of the last pixel's levels sum to 1."""
    torch.manual_seed(0)
    net = PixelCNN(SIDE)
    levels = torch.randint(LEVELS, (1, SIDE, SIDE)).repeat(LEVELS, 1, 1)
    levels[:, -1, -1] = torch.arange(LEVELS)
    with torch.no_grad():
        log_p = net(levels)
        shared = torch.logsumexp(log_p, 0)
        rest = levels.clone()
        rest[:, -1, -1] = 0
        logits = []
        hook = net.head[-1].register_forward_hook(lambda module, inputs, output: logits.append(output))
        net(rest[:1])
        hook.remove()
        picked = torch.log_softmax(logits[0], 1)[0].gather(0, rest[:1]).squeeze(0)
        before_last = picked.sum() - picked[-1, -1]
    assert float(shared) == pytest.approx(float(before_last), abs=1e-2)


def test_images_are_made_small_and_grey():
    bonus = PixelCNNBonus(gym.spaces.Box(0, 255, (84, 84), np.uint8))
    picture = np.zeros((84, 84), np.uint8)
    picture[:2, 2:4] = 255
    picture[4:6, 4:6] = 100
    levels = bonus._quantized(picture[None])[0]
    assert levels.shape == (42, 42)
    assert (levels[0, 1], levels[2, 2], int(levels.sum())) == (7, 100 * 8 // 256, 7 + 100 * 8 // 256)


def test_it_can_model_smaller_images():
    bonus = PixelCNNBonus(gym.spaces.Box(0, 255, (21, 21), np.uint8), side=21)
    pictures = np.zeros((1, 21, 21), np.uint8)
    pictures[0, 3, 5] = 255
    assert (bonus._quantized(pictures).numpy() == pictures // 255 * 7).all(), "not resized, and so unchanged"
    assert bonus.observe(pictures).shape == (1,)


def test_the_bonus_is_that_of_the_prediction_gain():
    bonus = PixelCNNBonus(IMAGES, seed=0, scale=0.25, gain_scale=0.5, lr=1e-4)
    for n in range(3):
        bonus.observe(image(n)[None])
    net = copy.deepcopy(bonus._net)
    reward = bonus.observe(image(3)[None])[0]
    levels = bonus._quantized(image(3)[None])
    with torch.no_grad():
        gain = float(bonus._net(levels) - net(levels))
    assert reward == pytest.approx(0.25 * np.sqrt(max(np.exp(0.5 * gain / np.sqrt(4)) - 1, 0)), rel=1e-3)


def test_asking_takes_the_step_and_undoes_it():
    bonus = PixelCNNBonus(IMAGES, seed=0)
    fresh = bonus.novelty(image(0)[None])
    for n in range(4):
        bonus.observe(image(n)[None])
    before = copy.deepcopy(bonus.state_dict())
    asked = bonus.novelty(np.stack([image(n) for n in (5, 6, 5)]))
    after = bonus.state_dict()
    assert asked[0] == asked[2]
    assert all(torch.equal(before["net"][k], after["net"][k]) for k in before["net"])
    for one, other in zip(before["optimizer"]["state"].values(), after["optimizer"]["state"].values(), strict=True):
        assert all(torch.equal(one[k], other[k]) for k in one)
    assert before["steps"] == after["steps"] == 4
    assert bonus.observe(image(5)[None])[0] == pytest.approx(bonus.scale * asked[0])
    assert fresh.shape == (1,)


def test_its_state_can_be_saved():
    one, other = PixelCNNBonus(IMAGES, seed=0), PixelCNNBonus(IMAGES, seed=5)
    for n in range(5):
        one.observe(image(n)[None])
    one.update()
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n in range(4, 8):
        assert one.observe(image(n)[None]) == other.observe(image(n)[None])
        assert one.update() == other.update()


def test_vectors_are_refused_with_what_to_use():
    with pytest.raises(UsageError, match="use bonus=cfn or bonus=rnd"):
        PixelCNNBonus(VECTORS)
