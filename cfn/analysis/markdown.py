"""Text of Markdown tables."""

from collections.abc import Iterable, Sequence

import numpy as np

from cfn.numbers import readable


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]], names: int) -> str:
    """Return a table as Markdown.

    Args:
        header: Name of each column.
        lines: Cells of each row.
        names: Number of columns, from the left, that hold names; numbers are aligned to the right.
    """
    rule = ["---"] * names + ["---:"] * (len(header) - names)
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in (header, rule, *lines))


def with_interval(centre: float, low: float, high: float) -> str:
    """Return a number with its interval; the number alone if the interval is unknown (NaN)."""
    bounds = "" if np.isnan(low) else f" ({readable(low)} to {readable(high)})"
    return f"{readable(centre)}{bounds}"
