"""Optimisers that take gradients as arguments, so that a compiled update can contain them, and their one entry point.

RMSProp is that of the published runs: epsilon inside the square root, mean of squared gradients starting at 1.
PyTorch's RMSprop divides by sqrt(v) + epsilon. With epsilon = 1e-4 and small gradients the step is at most
lr * g / 0.01 if epsilon is inside the root, and lr * g / 0.0001 if it is outside.

PyTorch's mean of squared gradients starts at 0, TensorFlow's at 1. From 1 it falls by the decay at each step, so with
decay 0.9 and small gradients it takes about 90 steps (0.9^90 = 8e-5) until it is below epsilon: until then steps are
small.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.adam import adam


class Optimizer(torch.optim.Optimizer):
    """Optimiser whose step is a function of parameters and gradients."""

    @abstractmethod
    def initial_state(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return the state of a parameter before its first step."""

    @abstractmethod
    def apply(self, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """Take one step with these gradients."""

    def prepare(self) -> None:
        """Create missing states. A compiled update cannot create them, so it is called before each update."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter not in self.state:
                    self.state[parameter].update(self.initial_state(parameter))

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take one step with the gradients that `backward` has left in the parameters."""
        assert closure is None, "gradients are computed before the step"
        self.prepare()
        parameters = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        self.apply(parameters, [p.grad for p in parameters])


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with the states and the numbers of `torch.optim.Adam`.

    Args:
        parameters: Parameters to optimise.
        lr: Learning rate.
        epsilon: Constant outside the root.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, epsilon: float = 1e-8) -> None:
        super().__init__(parameters, {"lr": lr, "betas": (0.9, 0.999), "eps": epsilon, "fused": True})

    def initial_state(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return zero moments and no steps."""
        step = torch.zeros((), dtype=torch.float32, device=parameter.device)
        return {"step": step, "exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter)}

    @torch.no_grad()
    def apply(self, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """Take one step: with PyTorch's fused kernel, or in operations that a compiler fuses with the rest."""
        (group,) = self.param_groups
        (beta1, beta2), lr, epsilon = group["betas"], group["lr"], group["eps"]
        steps, means, squares = (
            [self.state[p][name] for p in parameters] for name in ("step", "exp_avg", "exp_avg_sq")
        )
        if not torch.compiler.is_compiling():
            adam(
                parameters, gradients, means, squares, [], steps, fused=True, amsgrad=False, beta1=beta1, beta2=beta2,
                lr=lr, weight_decay=0.0, eps=epsilon, maximize=False,
            )  # fmt: skip
            return
        for parameter, gradient, step, mean, square in zip(parameters, gradients, steps, means, squares, strict=True):
            step += 1
            mean.lerp_(gradient, 1 - beta1)
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            root = square.sqrt() / (1 - beta2**step).sqrt() + epsilon
            parameter.sub_(lr / (1 - beta1**step) * mean / root)


class RMSProp(Optimizer):
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

    def initial_state(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return a mean square of 1, TensorFlow's initial value, and no momentum."""
        return {"mean_square": torch.ones_like(parameter), "momentum": torch.zeros_like(parameter)}

    @torch.no_grad()
    def apply(self, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """Take one step."""
        if not parameters:
            return
        (group,) = self.param_groups
        mean_squares, steps = ([self.state[p][name] for p in parameters] for name in ("mean_square", "momentum"))
        torch._foreach_mul_(mean_squares, group["decay"])
        torch._foreach_addcmul_(mean_squares, gradients, gradients, 1 - group["decay"])
        roots = torch._foreach_add(mean_squares, group["epsilon"])
        torch._foreach_sqrt_(roots)
        torch._foreach_mul_(steps, group["momentum"])
        torch._foreach_addcdiv_(steps, gradients, roots, group["lr"])
        torch._foreach_sub_(parameters, steps)


def descend(optimizer: Optimizer, *losses: tuple[Tensor, Sequence[Tensor]]) -> None:
    """Take one optimisation step, in which each loss trains its own parameters only.

    Args:
        optimizer: Optimiser of all the parameters.
        *losses: Losses, each with the parameters that it trains.
    """
    parameters = [parameter for _, trained in losses for parameter in trained]
    if torch.compiler.is_compiling():
        gradients = [gradient for loss, trained in losses for gradient in torch.autograd.grad(loss, list(trained))]
    else:  # `backward` gives gradients the memory layout of their parameters, which the fused kernel relies on
        optimizer.zero_grad()
        for loss, trained in losses:
            loss.backward(inputs=list(trained))  # type: ignore[no-untyped-call]
        gradients = [cast("Tensor", parameter.grad) for parameter in parameters]
    optimizer.apply(parameters, gradients)
