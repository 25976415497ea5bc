"""A bonus as a transform of TorchRL's environments, in the manner of its `RNDTransform`.

    env = TransformedEnv(env, BonusTransform(make_bonus("cfn", space)))

`RNDTransform` pays for the next observation and needs a loss of its own. This transform pays for the state in which the
action was taken, as everywhere in this package, and trains its bonus itself.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from tensordict import TensorDictBase
from torchrl.data import Composite, OneHot, Unbounded
from torchrl.envs.transforms import Transform

from cfn.bonuses.base import Bonus
from cfn.bonuses.visits import Visits
from cfn.errors import BadInputError
from cfn.types import Array, Metrics
from cfn.wrappers.payment import Combine, Payment

NO_SPACE: gym.Space[Any] = gym.Space()
"""TorchRL's environments have specs of their own; the bonus checks the observations themselves."""


class BonusTransform(Transform):  # type: ignore[misc]  # TorchRL has no types
    """Writes the intrinsic reward of each step beside the reward.

    All batch dimensions of the environment share the bonus. Put the transform around the batch of environments: inside
    the workers of a `ParallelEnv`, each process would have a bonus of its own.

    Args:
        bonus: Bonus, made for the observations of one environment.
        in_keys: Key of the observation that the bonus sees.
        out_keys: Key of the intrinsic reward.
        combine: Function from extrinsic and intrinsic rewards to the reward of a step, such as `np.add`; None keeps
            the reward.
    """

    def __init__(
        self,
        bonus: Bonus,
        in_keys: Sequence[str] = ("observation",),
        out_keys: Sequence[str] = ("intrinsic_reward",),
        combine: Combine | None = None,
    ) -> None:
        if len(in_keys) != 1 or len(out_keys) != 1:
            raise BadInputError(f"in_keys={[*in_keys]}, out_keys={[*out_keys]}: a bonus has one key of each")
        super().__init__(in_keys=[*in_keys], out_keys=[*out_keys])
        self.bonus = bonus
        self._payment, self._combine = Payment(bonus, NO_SPACE), combine
        self._begins: Array | None = None  # which environments have just been reset; None: all of them

    def take_metrics(self) -> Metrics:
        """Return the means of the bonus's metrics since the last call, such as `bonus/reward` and `bonus/loss`."""
        return self._payment.take_metrics()

    def save(self, folder: str | Path) -> None:
        """Save the bonus. No pickle is written."""
        self._payment.save(folder)

    def load(self, folder: str | Path) -> None:
        """Restore a saved bonus exactly; it must have been made with the same arguments."""
        self._payment.load(folder)

    def transform_reward_spec(self, reward_spec: Composite) -> Composite:
        """Add the intrinsic reward, with the shape of the reward."""
        shape, device = (*reward_spec.shape, 1), reward_spec.device
        reward_spec[self.out_keys[0]] = Unbounded(shape=shape, device=device, dtype=torch.float32)
        return reward_spec

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        mask = tensordict.get("_reset", None) if tensordict is not None else None
        if mask is None:
            self._begins = None
        elif self._begins is not None:
            self._begins |= _rows(mask, tensordict_reset.batch_dims)[:, 0]
        return tensordict_reset

    def _step(self, tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> TensorDictBase:
        dims = tensordict.batch_dims
        observations = _rows(tensordict.get(self.in_keys[0]), dims)
        ends = {name: _rows(next_tensordict.get(name), dims)[:, 0] for name in ("done", "terminated")}
        visits = Visits(
            actions=self._actions(tensordict, dims),
            next_observations=_rows(next_tensordict.get(self.in_keys[0]), dims),
            begins=np.ones(len(observations), np.bool_) if self._begins is None else self._begins,
            terminated=ends["terminated"],
            truncated=ends["done"] & ~ends["terminated"],
        )
        intrinsic = self._payment.pay(observations, visits)
        self._begins = np.zeros(len(observations), np.bool_)
        reward = next_tensordict.get("reward")
        next_tensordict.set(
            self.out_keys[0], torch.as_tensor(intrinsic, dtype=torch.float32).to(reward).view_as(reward)
        )
        if self._combine is not None:
            combined = self._combine(_rows(reward, dims)[:, 0], intrinsic)
            next_tensordict.set("reward", torch.as_tensor(combined).to(reward).view_as(reward))
        return next_tensordict

    def _actions(self, tensordict: TensorDictBase, dims: int) -> Array | None:
        """Return the actions, one row per environment; one-hot actions as numbers."""
        if (action := tensordict.get("action", None)) is None:
            return None
        if self.parent is not None and isinstance(self.parent.action_spec, OneHot):
            action = action.to(torch.uint8).argmax(dim=-1)
        return _rows(action, dims)


def _rows(tensor: torch.Tensor, dims: int) -> Array:
    """Return a tensor as an array with one row per environment."""
    rows = tensor.detach().flatten(0, dims - 1) if dims else tensor.detach()[None]
    array: Array = rows.cpu().numpy()
    return array
