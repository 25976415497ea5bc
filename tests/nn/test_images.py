import pytest

from cfn.nn import images


@pytest.mark.parametrize(
    ("shape", "first"),
    [
        *(((3, 84, 84), True), ((4, 84, 84), True), ((12, 84, 84), True), ((1, 210, 160), True), ((3, 210, 160), True)),
        *(((84, 84, 3), False), ((84, 84, 4), False), ((210, 160, 3), False), ((7, 7, 3), False), ((5, 5, 20), False)),
        *(((84, 84), False), ((8, 16, 32), False)),
    ],
)
def test_channels_first_is_recognised(shape, first):
    assert images.channels_first(shape) == first
