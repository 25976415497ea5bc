import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cfn.replay.content_index import ContentIndex, content_digest

DIGESTS = [(low, high) for low in (0, 1, 1023, 1024, -1) for high in (0, 1)]  # whose places in the table are close


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.integers(0, len(DIGESTS) - 1), max_size=100))
def test_it_is_a_dictionary(toggles):
    index, plain, free = ContentIndex(), {}, list(range(len(DIGESTS)))
    for which in toggles:
        digest = DIGESTS[which]
        if digest in plain:
            free.append(plain.pop(digest))
            index.remove(free[-1])
        else:
            plain[digest] = free.pop()
            index.add(plain[digest], digest)
        assert len(index) == len(plain)
        assert {d: index.find(d) for d in DIGESTS} == {d: plain.get(d) for d in DIGESTS}


def test_it_grows():
    index = ContentIndex()
    images = np.random.default_rng(0).integers(256, size=(5000, 4, 4), dtype=np.uint8)
    digests = [content_digest(image.tobytes()) for image in images]
    for slot, digest in enumerate(digests):
        index.add(slot, digest)
    assert [index.find(digest) for digest in digests] == list(range(5000))
    assert index._table.nbytes + index._digests.nbytes <= 2 * ContentIndex.BYTES * 5000, "when it has just grown"
