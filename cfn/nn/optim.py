"""RMSProp as in the published runs: epsilon inside the square root, mean of squared gradients starting at 1.

PyTorch's RMSprop divides by sqrt(v) + epsilon. With epsilon = 1e-4 and small gradients the step is at most
lr * g / 0.01 if epsilon is inside the root, and lr * g / 0.0001 if it is outside.

PyTorch's mean of squared gradients starts at 0, TensorFlow's at 1. From 1 it falls by the decay at each step, so with
decay 0.9 and small gradients it takes about 90 steps (0.9^90 = 8e-5) until it is below epsilon: until then steps are
small.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class RMSProp(torch.optim.Optimizer):
    """v = decay v + (1 - decay) g^2;  m = momentum m + lr g / sqrt(v + epsilon);  parameter -= m;  first v = 1, m = 0.

    Args:
        parameters: Parameters to optimise.
        lr: Learning rate.
        decay: Decay of the mean of squared gradients.
        momentum: Momentum of the steps.
        epsilon: Constant inside the root.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        decay: float = 0.9,
        momentum: float = 0.9,
        epsilon: float = 1e-4,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "decay": decay, "momentum": momentum, "epsilon": epsilon})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take one optimisation step."""
        assert closure is None, "gradients are computed before the step"
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if not parameters:
                continue
            for p in parameters:
                if not self.state[p]:
                    self.state[p].update(mean_square=torch.ones_like(p), momentum=torch.zeros_like(p))
            gradients = [p.grad for p in parameters]
            mean_squares = [self.state[p]["mean_square"] for p in parameters]
            steps = [self.state[p]["momentum"] for p in parameters]
            torch._foreach_mul_(mean_squares, group["decay"])
            torch._foreach_addcmul_(mean_squares, gradients, gradients, 1 - group["decay"])
            roots = torch._foreach_add(mean_squares, group["epsilon"])
            torch._foreach_sqrt_(roots)
            torch._foreach_mul_(steps, group["momentum"])
            torch._foreach_addcdiv_(steps, gradients, roots, group["lr"])
            torch._foreach_sub_(parameters, steps)
