"""Shapes of images. Importing this does not import PyTorch: processes that only step environments start sooner."""


def channels_first(shape: tuple[int, ...]) -> bool:
    """Return whether the shape of an image is channels x height x width: its first size is the smallest of three.

    A few sizes could be either; they count as channels first only if height and width are equal, or at most 4 channels
    come first.
    """
    if len(shape) != 3:
        return False
    first, second, third = shape
    return first < min(second, third) and (second == third or first <= 4)
