import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cfn.agents.categorical import Support

CPU = torch.device("cpu")


def plain_projection(probabilities, reward, discount, vmin, vmax):
    """Algorithm 1 of Bellemare et al. (2017), as written there."""
    atoms = len(probabilities)
    width = (vmax - vmin) / (atoms - 1)
    projected = np.zeros(atoms)
    for j in range(atoms):
        moved = min(max(reward + discount * (vmin + j * width), vmin), vmax)
        b = min((moved - vmin) / width, atoms - 1)  # which rounding may exceed
        lower, upper = int(np.floor(b)), int(np.ceil(b))
        if lower == upper:
            projected[lower] += probabilities[j]
        else:
            projected[lower] += probabilities[j] * (upper - b)
            projected[upper] += probabilities[j] * (b - lower)
    return projected


@settings(deadline=None)  # the first example compiles
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(2, 51)), elements=st.floats(0.01, 1)),
    st.floats(-30, 30),
    st.floats(0, 1),
    st.floats(-20, 5),
    st.floats(0.5, 30),
)
def test_the_projection_equals_a_plain_loop_and_conserves_mass(weights, reward, discount, vmin, width):
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    support = Support(weights.shape[1], vmin, vmin + width, CPU)
    rows = torch.full((len(weights),), reward, dtype=torch.float64), torch.full((len(weights),), discount).double()
    projected = support.project(torch.from_numpy(probabilities), *support.shift(*rows)).numpy()
    assert projected.sum(axis=1) == pytest.approx(1, abs=1e-6)
    for ours, before in zip(projected, probabilities, strict=True):
        assert ours == pytest.approx(plain_projection(before, reward, discount, vmin, vmin + width), abs=1e-6)


def test_probabilities_of_single_precision_are_projected_as_well():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(51), 64).astype(np.float32)
    rewards, discounts = rng.uniform(-1, 1, 64).astype(np.float32), rng.choice([0, 0.97], 64).astype(np.float32)
    support = Support(51, -10, 10, CPU)
    shifted = support.shift(torch.from_numpy(rewards), torch.from_numpy(discounts))
    ours = support.project(torch.from_numpy(probabilities), *shifted).numpy()
    for i in range(64):
        plain = plain_projection(probabilities[i], float(rewards[i]), float(discounts[i]), -10, 10)
        assert ours[i] == pytest.approx(plain, abs=1e-6)


def test_nothing_after_a_termination_but_the_reward():
    support = Support(3, -1, 1, CPU)
    after = support.project(torch.tensor([[0.2, 0.5, 0.3]]), *support.shift(torch.tensor([0.5]), torch.tensor([0.0])))
    assert after[0].tolist() == pytest.approx([0, 0.5, 0.5])


def test_the_mean_is_the_expected_return():
    support = Support(3, -1, 1, CPU)
    assert support.mean(torch.tensor([0.2, 0.5, 0.3]).log()).item() == pytest.approx(0.1)
