"""Text of Markdown tables."""

from collections.abc import Iterable, Sequence

import numpy as np


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]], names: int) -> str:
    """Return a table as Markdown.

    Args:
        header: Name of each column.
        lines: Cells of each row.
        names: Number of columns, from the left, that hold names; numbers are aligned to the right.
    """
    rule = ["---"] * names + ["---:"] * (len(header) - names)
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in (header, rule, *lines))


def three_digits(value: float) -> str:
    """Return a number with three significant digits, or as a whole number if it has four to nine digits."""
    value = round(float(value), 12) + 0.0  # rounding errors around 0 become 0
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e9 else f"{value:.3g}"


def with_interval(centre: float, low: float, high: float) -> str:
    """Return a number with its interval; the number alone if the interval is unknown (NaN)."""
    bounds = "" if np.isnan(low) else f" ({three_digits(low)} to {three_digits(high)})"
    return f"{three_digits(centre)}{bounds}"
