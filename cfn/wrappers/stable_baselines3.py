"""A bonus for Stable-Baselines3, for on-policy and off-policy algorithms.

    venv = VecBonus(make_vec_env("MountainCar-v0", n_envs=4), make_bonus("cfn", space))
    PPO("MlpPolicy", venv).learn(100_000, callback=venv.callback())

The bonus is part of the reward before returns and advantages are computed, so its future is bootstrapped like that of
any reward. An off-policy algorithm stores the bonus of the moment of the visit, as the paper's agents do.
"""

from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from cfn.bonuses.base import Bonus
from cfn.bonuses.visits import Visits
from cfn.errors import BadInputError, WrongTypeError
from cfn.types import Array, Metrics
from cfn.wrappers.payment import Combine, Payment, states_or_none


class VecBonus(VecEnvWrapper):
    """Adds a bonus to the rewards of a `VecEnv`.

    The `infos` have `extrinsic_reward` and `intrinsic_reward`. `Monitor` and `VecMonitor` inside this wrapper, as from
    `make_vec_env`, record the extrinsic returns. Image wrappers that put channels first belong outside of it, where
    Stable-Baselines3 adds them itself; frame stacks too, so that the bonus sees the newest frame.

    Args:
        venv: Environments.
        bonus: Bonus, made for `venv.observation_space`.
        combine: Function from extrinsic and intrinsic rewards to the rewards of a step; by default, their sum.
        key: Entry of Dict observations that the bonus sees.
    """

    def __init__(self, venv: VecEnv, bonus: Bonus, combine: Combine = np.add, key: str | None = None) -> None:
        if not isinstance(venv, VecEnv):
            raise WrongTypeError(
                f"{type(venv).__name__} is no VecEnv. A bonus inside each environment would count only that "
                "environment's visits: wrap the VecEnv, for example make_vec_env(id, n_envs=1)"
            )
        super().__init__(venv)
        self._payment, self._combine = Payment(bonus, venv.observation_space, key), combine
        self.bonus = bonus
        self._observations: Array | None = None  # s_t, as the bonus sees it
        self._actions: Array | None = None
        self._states: list[Any] = [None] * self.num_envs
        self._begins = np.ones(self.num_envs, np.bool_)

    def reset(self) -> Any:
        """Reset all environments."""
        observations = self.venv.reset()
        self._begins = np.ones(self.num_envs, np.bool_)
        self._states = [info.get("state") for info in self.unwrapped.reset_infos]
        self._observations = np.array(self._payment.visible(observations))
        return observations

    def step_async(self, actions: Array) -> None:
        """Begin a step."""
        self._actions = np.array(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Finish a step, and return rewards with the bonus of s_t."""
        if self._observations is None:
            raise BadInputError("the environments were not reset: call reset() before step()")
        following, extrinsic, ended, infos = self.venv.step_wait()
        truncated = np.array([bool(info.get("TimeLimit.truncated")) for info in infos]) & ended
        visits = Visits(
            states=states_or_none(self._states),
            actions=self._actions,
            next_observations=self._successors(following, ended, infos),
            begins=self._begins,
            terminated=ended & ~truncated,
            truncated=truncated,
            next_states=states_or_none([info.get("state") for info in infos]),
        )
        intrinsic = self._payment.pay(self._observations, visits)
        for info, outer, inner in zip(infos, extrinsic.tolist(), intrinsic.tolist(), strict=True):
            info["extrinsic_reward"], info["intrinsic_reward"] = outer, inner
        self._begins = ended
        resets = self.unwrapped.reset_infos
        self._states = [(resets[i] if ended[i] else infos[i]).get("state") for i in range(self.num_envs)]
        self._observations = np.array(self._payment.visible(following))
        return following, self._combine(extrinsic, intrinsic).astype(extrinsic.dtype), ended, infos

    def callback(self) -> "BonusCallback":
        """Return a callback for `learn`, which writes the bonus's metrics to the logger of the algorithm."""
        return BonusCallback(self)

    def take_metrics(self) -> Metrics:
        """Return the means of the bonus's metrics since the last call, such as `bonus/reward` and `bonus/loss`."""
        return self._payment.take_metrics()

    def save(self, folder: str | Path) -> None:
        """Save the bonus beside a model: `model.save("agent"); venv.save("agent-bonus")`. No pickle is written."""
        self._payment.save(folder)

    def load(self, folder: str | Path) -> None:
        """Restore a saved bonus exactly, made with the same arguments; then reset the environments."""
        self._payment.load(folder)
        self._observations = None

    def close(self) -> None:
        """Close the environments; another wrapper may then use the bonus."""
        self._payment.release()
        self.venv.close()

    def _successors(self, following: Any, ended: Array, infos: list[dict[str, Any]]) -> Array:
        """Return s_t+1 of every environment: where an episode ended, its last observation."""
        successors = np.asarray(self._payment.visible(following))
        if ended.any():
            successors = successors.copy()
            for i in np.flatnonzero(ended):
                successors[i] = self._payment.visible(infos[i]["terminal_observation"])
        return successors


class BonusCallback(BaseCallback):
    """Writes the bonus's metrics to the logger of an algorithm, under their names in `cfn train`.

    Args:
        venv: Environments with the bonus.
        every: Steps of the `VecEnv` between records; the algorithm decides when it writes their means.
    """

    def __init__(self, venv: VecBonus, every: int = 100) -> None:
        super().__init__()
        self._venv, self._every = venv, every

    def _on_step(self) -> bool:
        if self.n_calls % self._every == 0:
            for name, value in self._venv.take_metrics().items():
                self.logger.record_mean(name, value)
        return True
