import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfn.replay.n_step import NStep

STREAMS = st.lists(
    st.tuples(st.floats(-1, 1), st.sampled_from(["goes on", "terminated", "truncated", "both"])), max_size=40
)


def plain(steps, n, gamma):
    """By the definition, from the whole record: for each t, sum rewards until n of them or the episode's end."""
    transitions = []
    for t in range(len(steps)):
        total = 0.0
        for k in range(t, len(steps)):
            reward, end = steps[k]
            total += gamma ** (k - t) * reward
            if end != "goes on" or k - t + 1 == n:
                discount = 0.0 if end in ("terminated", "both") else gamma ** (k - t + 1)
                cut = end == "truncated" and k - t + 1 < n
                transitions.append((f"s{t}", f"a{t}", total, discount, f"after {k}", cut))
                break
    return transitions


@given(STREAMS, st.integers(1, 5), st.floats(0, 1))
def test_it_equals_a_plain_loop_over_the_record(steps, n, gamma):
    window = NStep(n, gamma)
    found = []
    for t, (reward, end) in enumerate(steps):
        found += window.add(
            f"s{t}", f"a{t}", reward, f"after {t}", end in ("terminated", "both"), end in ("truncated", "both")
        )
    expected = plain(steps, n, gamma)
    assert [(s, a, *rest) for s, a, _, _, *rest in found] == [(s, a, *rest) for s, a, _, _, *rest in expected]
    assert [f[2] for f in found] == pytest.approx([e[2] for e in expected], abs=1e-9)
    assert [f[3] for f in found] == pytest.approx([e[3] for e in expected], abs=1e-9)


def test_its_state_can_be_saved():
    one, other = NStep(3, 0.9), NStep(3, 0.9)
    one.add("a", 0, 1.0, "b", False, False)
    other.load_state_dict(one.state_dict())
    ends = [window.add("b", 1, 2.0, "c", True, False) for window in (one, other)]
    assert ends[0] == ends[1]
    assert len(ends[0]) == 2


def test_what_waits_when_an_episode_is_cut_off_ends_there():
    one, other = NStep(3, 0.5), NStep(3, 0.5)
    for window in (one, other):
        assert window.add("a", 0, 1.0, "b", False, False) == []
    assert other.add("b", 1, 2.0, "c", False, False) == []
    expected = [("a", 0, 2.0, 0.25, "c", True), ("b", 1, 2.0, 0.5, "c", True)]
    assert one.add("b", 1, 2.0, "c", False, True) == other.end("c") == expected
    assert other.end("c") == []


@pytest.mark.parametrize("terminated", [False, True])
def test_only_truncations_cut_windows_and_only_those_with_fewer_than_n_rewards(terminated):
    """Rewards 1, 2, 4, 8, gamma 1/2: 2 + 4/2 + 8/4 = 6 is complete; 4 + 8/2 = 8 and 8 are not."""
    window = NStep(3, 0.5)
    assert window.add("a", 0, 1.0, "b", False, False) == window.add("b", 1, 2.0, "c", False, False) == []
    assert window.add("c", 2, 4.0, "d", False, False) == [("a", 0, 3.0, 0.125, "d", False)]
    assert window.add("d", 3, 8.0, "e", terminated, not terminated) == [
        ("b", 1, 6.0, 0.0 if terminated else 0.125, "e", False),
        ("c", 2, 8.0, 0.0 if terminated else 0.25, "e", not terminated),
        ("d", 3, 8.0, 0.0 if terminated else 0.5, "e", not terminated),
    ]
