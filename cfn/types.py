"""Types that several pieces share.

The ranges in annotations such as `size: Positive` are the config's schema: what a constructor declares is what
`cfn train` checks before anything starts.
"""

import math
from typing import Annotated, Any

import numpy.typing as npt
from annotated_types import Ge, Gt, Le, Lt

Array = npt.NDArray[Any]
Metrics = dict[str, float]

State = tuple[int, ...]
"""The true state of an environment (`info["state"]`), by which visits are counted."""

Positive = Annotated[int, Ge(1)]
NonNegative = Annotated[int, Ge(0)]
Finite = Annotated[float, Gt(-math.inf), Lt(math.inf)]
PositiveFloat = Annotated[float, Gt(0), Lt(math.inf)]
NonNegativeFloat = Annotated[float, Ge(0), Lt(math.inf)]
Probability = Annotated[float, Ge(0), Le(1)]
