import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cfn.replay.ring import kept


@given(st.integers(1, 12), st.integers(0, 40), st.integers(0, 30), st.data())
def test_what_is_kept_is_what_a_plain_ring_still_holds(capacity, drawn, more, data):
    ring = {}
    for number in range(drawn):
        ring[number % capacity] = number
    entries = np.array(data.draw(st.lists(st.sampled_from(sorted(ring)), max_size=8)) if ring else [], int)
    before = [ring[entry] for entry in entries]
    for number in range(drawn, drawn + more):
        ring[number % capacity] = number
    expected = [ring[entry] == number for entry, number in zip(entries, before, strict=True)]
    assert kept(entries, drawn, drawn + more, capacity).tolist() == expected
