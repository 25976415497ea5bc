import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from looks import IMAGES, VECTORS, image

from cfn.bonuses.pixelcnn import PixelCNNBonus
from cfn.errors import UsageError

GATES = pytest.mark.parametrize("gate", ["sum", "product"])


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


@GATES
def test_the_bonus_is_that_of_the_prediction_gain(gate):
    bonus = PixelCNNBonus(IMAGES, seed=0, scale=0.25, gain_scale=0.5, lr=1e-3, gate=gate)
    for n in range(3):
        bonus.observe(image(n)[None])
    net = copy.deepcopy(bonus._net)
    reward = bonus.observe(image(3)[None])[0]
    levels = bonus._quantized(image(3)[None])
    with torch.no_grad():
        gain = float(bonus._net(levels) - net(levels))
    assert gain > 0
    assert reward == pytest.approx(0.25 * np.sqrt(np.exp(0.5 * gain / np.sqrt(4)) - 1), rel=1e-3)


def test_prediction_gain_and_bonus_equal_those_computed_by_hand():
    """With all weights 0, only the biases of the 8 logits have a gradient, softmax(b) - (share of each level)."""
    bonus = PixelCNNBonus(IMAGES, scale=0.25, gain_scale=0.5, lr=0.01, side=16)
    with torch.no_grad():
        for p in bonus._net.parameters():
            p.zero_()
    black = np.zeros((1, 16, 16), np.uint8)
    # first step: g = 1/8 - 1 = -0.875 for level 0, 1/8 for the other 7; v = 0.9 * 1 + 0.1 g^2
    up = 0.01 * 0.875 / (0.9 + 0.1 * 0.765625 + 1e-4) ** 0.5
    down = 0.01 * 0.125 / (0.9 + 0.1 * 0.015625 + 1e-4) ** 0.5
    gain = 256 * (np.log(8) + up - np.log(np.exp(up) + 7 * np.exp(-down)))
    assert (up, down, gain) == pytest.approx((0.00885392, 0.00131640, 2.276701), rel=1e-4)
    assert bonus.observe(black)[0] == pytest.approx(0.25 * np.sqrt(np.exp(0.5 * gain) - 1), rel=1e-4)
    # second step: v decays once more, the momentum is 0.9, and the gain is divided by sqrt(2)
    p0 = np.exp(up) / (np.exp(up) + 7 * np.exp(-down))
    g0, g1 = 1 - p0, (1 - p0) / 7
    up2 = 0.9 * up + 0.01 * g0 / (0.9 * (0.9 + 0.1 * 0.765625) + 0.1 * g0**2 + 1e-4) ** 0.5
    down2 = 0.9 * down + 0.01 * g1 / (0.9 * (0.9 + 0.1 * 0.015625) + 0.1 * g1**2 + 1e-4) ** 0.5
    p0_after = np.exp(up + up2) / (np.exp(up + up2) + 7 * np.exp(-down - down2))
    gain = 256 * np.log(p0_after / p0)
    assert bonus.novelty(black)[0] == pytest.approx(np.sqrt(np.exp(0.5 * gain / np.sqrt(2)) - 1), rel=1e-4)
    assert bonus.observe(black)[0] == pytest.approx(0.25 * np.sqrt(np.exp(0.5 * gain / np.sqrt(2)) - 1), rel=1e-4)
    assert bonus.update() == {"bonus/loss": pytest.approx((np.log(8) - np.log(p0)) / 2, rel=1e-4)}


def test_a_negative_gain_pays_nothing():
    """The momentum of white images carries on when the image is black: white gains, black loses."""
    bonus = PixelCNNBonus(IMAGES, lr=0.01, side=16)
    with torch.no_grad():
        for p in bonus._net.parameters():
            p.zero_()
    black, white = np.zeros((1, 16, 16), np.uint8), np.full((1, 16, 16), 255, np.uint8)
    for _ in range(30):
        assert bonus.observe(white)[0] > 0
    assert bonus.observe(black)[0] == 0
    assert np.isfinite(PixelCNNBonus(IMAGES, gain_scale=1e9).observe(image(0)[None])).all()


@pytest.mark.parametrize("steps", [0, 4])
@GATES
def test_asking_takes_the_step_and_undoes_it(steps, gate):
    bonus = PixelCNNBonus(IMAGES, seed=0, gate=gate)
    for n in range(steps):
        bonus.observe(image(n)[None])
    before = copy.deepcopy(bonus.state_dict())
    asked = bonus.novelty(np.stack([image(n) for n in (5, 6, 5)]))
    after = bonus.state_dict()
    assert asked[0] == asked[2] > 0
    assert all(torch.equal(before["net"][k], after["net"][k]) for k in before["net"])
    assert before["optimizer"]["state"].keys() == after["optimizer"]["state"].keys()
    assert len(after["optimizer"]["state"]) == (len(before["net"]) if steps else 0)
    for one, other in zip(before["optimizer"]["state"].values(), after["optimizer"]["state"].values(), strict=True):
        assert all(torch.equal(one[k], other[k]) for k in ("mean_square", "momentum"))
    assert (after["steps"], after["losses"]) == (before["steps"], before["losses"])
    assert after["steps"] == steps
    assert bonus.observe(image(5)[None])[0] == pytest.approx(bonus.scale * asked[0], rel=1e-12)


@GATES
def test_its_state_can_be_saved(gate):
    one, other = PixelCNNBonus(IMAGES, seed=0, gate=gate), PixelCNNBonus(IMAGES, seed=5, gate=gate)
    for n in range(5):
        one.observe(image(n)[None])
    one.update()
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for n in range(4, 8):
        assert one.observe(image(n)[None]) == other.observe(image(n)[None])
        assert one.update() == other.update()


def test_a_state_with_other_layers_is_refused_and_changes_nothing():
    bonus = PixelCNNBonus(IMAGES)
    before = copy.deepcopy(bonus._net.state_dict())
    state = copy.deepcopy(bonus.state_dict())
    state["net"] = {name.replace("blocks", "layers"): torch.zeros_like(p) for name, p in state["net"].items()}
    with pytest.raises(ValueError, match="another version of cfn: resume the run with that version, or train it again"):
        bonus.load_state_dict(state)
    assert all(torch.equal(before[k], v) for k, v in bonus._net.state_dict().items())


def test_vectors_are_refused_with_what_to_use():
    with pytest.raises(UsageError, match="use bonus=cfn or bonus=rnd"):
        PixelCNNBonus(VECTORS)
