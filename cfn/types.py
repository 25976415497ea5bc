"""Types shared by several parts.

Ranges in annotations such as `size: Positive` are the schema of the config: `cfn train` checks them before it starts.
"""

from typing import Annotated, Any

import numpy.typing as npt
from annotated_types import Ge, Gt, Le
from pydantic import AllowInfNan

Array = npt.NDArray[Any]
Metrics = dict[str, float]

State = tuple[int, ...]
"""True state of an environment (`info["state"]`); visits are counted per true state."""

Positive = Annotated[int, Ge(1)]
NonNegative = Annotated[int, Ge(0)]
Finite = Annotated[float, AllowInfNan(False)]
PositiveFloat = Annotated[float, Gt(0), AllowInfNan(False)]
NonNegativeFloat = Annotated[float, Ge(0), AllowInfNan(False)]
Probability = Annotated[float, Ge(0), Le(1)]
