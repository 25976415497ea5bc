"""RMSProp as the published runs have it: epsilon inside the root.

PyTorch's own adds epsilon outside, sqrt(v) + epsilon, where the same 1e-4 means something very different: inside, it
bounds the step at lr * g / 0.01 for small gradients; outside, at lr * g / 0.0001.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class RMSProp(torch.optim.Optimizer):
    """v = decay v + (1 - decay) g^2;  m = momentum m + lr g / sqrt(v + epsilon);  parameter -= m.

    Args:
        parameters: What to optimise.
        lr: Learning rate.
        decay: Of the mean of squared gradients.
        momentum: Of the steps.
        epsilon: Inside the root.
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
        """Take one step."""
        assert closure is None, "gradients are computed before"
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if not parameters:
                continue
            for p in parameters:
                if not self.state[p]:
                    self.state[p].update(mean_square=torch.zeros_like(p), momentum=torch.zeros_like(p))
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
