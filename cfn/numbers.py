"""Numbers as people read them."""


def readable(value: float, digits: int = 3) -> str:
    """Return a number with three significant digits, or as a whole number if it has four to nine digits.

    Args:
        value: Number to show.
        digits: Significant digits of other numbers than whole ones.
    """
    value = round(float(value), 12) + 0.0  # rounding errors around 0 become 0
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.{digits}g}"
