"""Optimisers that take gradients as arguments, so that a compiled update can contain them, and their one entry point.

RMSProp is that of the published runs: epsilon inside the square root, mean of squared gradients starting at 1.
PyTorch's RMSprop divides by sqrt(v) + epsilon. With epsilon = 1e-4 and small gradients the step is at most
lr * g / 0.01 if epsilon is inside the root, and lr * g / 0.0001 if it is outside.

PyTorch's mean of squared gradients starts at 0, TensorFlow's at 1. From 1 it falls by the decay at each step, so with
decay 0.9 and small gradients it takes about 90 steps (0.9^90 = 8e-5) until it is below epsilon: until then steps are
small.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import torch
from torch import Tensor


def _without_compiler(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of PyTorch's optimisers without its decorator, which takes a second to import the compiler."""
    return getattr(method, "__wrapped__", method)


class Optimizer(torch.optim.Optimizer):
    """Optimiser whose step is a function of parameters and gradients."""

    add_param_group = _without_compiler(torch.optim.Optimizer.add_param_group)
    state_dict = _without_compiler(torch.optim.Optimizer.state_dict)
    load_state_dict = _without_compiler(torch.optim.Optimizer.load_state_dict)

    @abstractmethod
    def initial_state(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return the state of a parameter before its first step."""

    @abstractmethod
    def apply(self, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """Take one step with these gradients."""

    in_graph = False
    """Whether the step is part of a compiled update."""

    def prepare(self) -> None:
        """Create missing states before each update, outside the compiled graph."""
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
        first = self.param_groups[0]["params"][0]
        # A compiler would compute the two powers again for each parameter's every element.
        self._rate, self._root_factor = (torch.zeros((), device=first.device) for _ in range(2))

    def prepare(self) -> None:
        """Create missing states, and compute the corrections of the moments for the next step."""
        super().prepare()
        if self.in_graph:
            (group,) = self.param_groups
            (beta1, beta2), step = group["betas"], self.state[group["params"][0]]["step"] + 1
            first, second = (-torch.expm1(step * math.log(beta)) for beta in (beta1, beta2))  # 1 - beta^step
            self._rate.copy_(group["lr"] / first)
            self._root_factor.copy_(second.rsqrt())

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
            if parameters:
                torch._foreach_add_(steps, 1)
                torch._fused_adam_(  # `torch.optim.adam` sorts the parameters by device and type at every step
                    parameters, gradients, means, squares, [], steps, lr=lr, beta1=beta1, beta2=beta2,
                    weight_decay=0.0, eps=epsilon, amsgrad=False, maximize=False,
                )  # fmt: skip
            return
        for parameter, gradient, step, mean, square in zip(parameters, gradients, steps, means, squares, strict=True):
            step += 1
            mean.lerp_(gradient, 1 - beta1)
            square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            parameter.sub_(self._rate * mean / (square.sqrt() * self._root_factor + epsilon))


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


class CentredRMSProp(Optimizer):
    """Centred RMSProp, with the states and the numbers of `torch.optim.RMSprop`: epsilon outside the root, first v = 0.

    v = decay v + (1 - decay) g^2;  u = decay u + (1 - decay) g;  parameter -= lr g / (sqrt(v - u^2) + epsilon).

    Args:
        parameters: Parameters to optimise.
        lr: Learning rate.
        decay: Decay of the means.
        epsilon: Constant outside the root.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, decay: float, epsilon: float) -> None:
        super().__init__(parameters, {"lr": lr, "alpha": decay, "eps": epsilon})

    def initial_state(self, parameter: Tensor) -> dict[str, Tensor]:
        """Return means of 0; the number of steps is that of PyTorch's states, and not used."""
        step = torch.zeros((), dtype=torch.float32)
        return {"step": step, "square_avg": torch.zeros_like(parameter), "grad_avg": torch.zeros_like(parameter)}

    @torch.no_grad()
    def apply(self, parameters: list[Tensor], gradients: list[Tensor]) -> None:
        """Take one step."""
        if not parameters:
            return
        (group,) = self.param_groups
        squares, means = ([self.state[p][name] for p in parameters] for name in ("square_avg", "grad_avg"))
        torch._foreach_mul_(squares, group["alpha"])
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - group["alpha"])
        torch._foreach_lerp_(means, gradients, 1 - group["alpha"])
        roots = torch._foreach_addcmul(squares, means, means, -1.0)
        torch._foreach_sqrt_(roots)
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_addcdiv_(parameters, gradients, roots, -group["lr"])


def descend(optimizer: Optimizer, *losses: tuple[Tensor, Sequence[Tensor]], max_norm: float | None = None) -> None:
    """Take one optimisation step, in which each loss trains its own parameters only.

    Args:
        optimizer: Optimiser of all the parameters.
        *losses: Losses, each with the parameters that it trains.
        max_norm: Norm to which the gradient of all parameters together is clipped; None: it is not clipped.
    """
    parameters = [parameter for _, trained in losses for parameter in trained]
    if torch.compiler.is_compiling():
        gradients = [gradient for loss, trained in losses for gradient in torch.autograd.grad(loss, list(trained))]
    else:  # `backward` gives gradients the memory layout of their parameters, which the fused kernel relies on
        for parameter in parameters:  # `zero_grad` takes ten times as long, for its profiling
            parameter.grad = None
        for loss, trained in losses:
            loss.backward(inputs=list(trained))  # type: ignore[no-untyped-call]
        gradients = [cast("Tensor", parameter.grad) for parameter in parameters]
    if max_norm is not None:
        clip_gradients(gradients, max_norm)
    optimizer.apply(parameters, gradients)


@torch.no_grad()
def clip_gradients(gradients: list[Tensor], max_norm: float) -> None:
    """Scale gradients in place, so that their norm is at most `max_norm`; the numbers are PyTorch's."""
    norm = torch.stack(list(torch._foreach_norm(gradients))).norm()
    torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp(max=1.0))
