"""Agents of Stable-Baselines3 in the training loop of this package: `agent=sb3 agent.algorithm=PPO`.

The algorithm's own networks, buffers and updates are used; only its loop is not, because the loop of this package also
counts, evaluates and saves. Each step does what `collect_rollouts` of Stable-Baselines3 does. Differences from `learn`:

- Images smaller than 36x36 pixels, which the library's convolutions do not take, are flattened to vectors.
- A replay buffer has at most as many entries as the run has steps, because more are never filled.
- Checkpoints have the networks, the optimisers and the step, but neither the replay buffer nor the rollout: a resumed
  run fills them again, so it is not equal to an uninterrupted one.
"""

import logging
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import DummyVecEnv

from cfn.agents.base import Agent
from cfn.errors import BadValueError
from cfn.nn.device import Measured
from cfn.types import Array

log = logging.getLogger(__name__)

ALGORITHMS: dict[str, Any] = {"DQN": DQN, "PPO": PPO, "SAC": SAC, "TD3": TD3}
SMALLEST_IMAGE = 36
"""Smallest height and width that Stable-Baselines3's convolutions take, in pixels."""
TD3_NOISE = 0.1
"""Standard deviation of TD3's action noise, as in its publication; the library has none by default."""


class SB3Agent(Agent):
    """An algorithm of Stable-Baselines3.

    Args:
        observation_space: Images (uint8) or vectors.
        action_space: Actions.
        seed: Seed of weights, actions and sampling.
        device: Device of the networks.
        num_envs: Number of environments.
        steps: Length of the run, for schedules.
        algorithm: Name of the algorithm.
        policy: Policy class; auto: `CnnPolicy` for images of at least 36x36 pixels, else `MlpPolicy`.
        kwargs: Further arguments of the algorithm's constructor, such as {learning_rate: 0.001, gamma: 0.97}.
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        seed: int = 0,
        device: torch.device | str = "cpu",
        num_envs: int = 1,
        steps: int = 1_000_000,
        algorithm: Literal["DQN", "PPO", "SAC", "TD3"] = "PPO",
        policy: Literal["auto", "MlpPolicy", "CnnPolicy"] = "auto",
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        self._convert = _Conversion(observation_space, policy)
        self._steps, self._num_envs = steps, num_envs
        keys = dict(kwargs or {})
        if algorithm != "PPO":
            keys["buffer_size"] = min(int(keys.get("buffer_size", 1_000_000)), max(steps, num_envs))
        if algorithm == "TD3" and "action_noise" not in keys:
            size = action_space.shape or (1,)
            keys["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, TD3_NOISE))
        venv = DummyVecEnv([lambda: _Spaces(self._convert.space, action_space)] * num_envs)
        try:
            self._model: BaseAlgorithm = ALGORITHMS[algorithm](
                self._convert.policy, venv, seed=seed % 2**32, device=device, **keys
            )
        except AssertionError as error:  # the algorithm does not take these actions
            reason = str(error).splitlines()[0] if str(error) else f"actions of {action_space} do not fit"
            raise BadValueError("algorithm", f"{algorithm} cannot be used here ({reason}): choose another") from error
        self._model.set_logger(Logger(None, []))
        self._learner = _OnPolicy(self._model) if algorithm == "PPO" else _OffPolicy(self._model)
        self.update_period = self._learner.period * num_envs

    def act(self, observations: Array, explore: bool = True) -> Array:
        """Choose actions: the policy's samples for training, its most likely ones for evaluation."""
        inputs = self._convert(observations)
        if not explore:
            return np.asarray(self._model.predict(inputs, deterministic=True)[0])
        return self._learner.act(inputs)

    def observe(
        self,
        observations: Array,
        actions: Array,
        rewards: Array,
        next_observations: Array,
        terminated: Array,
        truncated: Array,
    ) -> None:
        """Store one transition per environment, in the replay buffer or in the rollout."""
        self._model.num_timesteps += self._num_envs
        self._model._update_current_progress_remaining(self._model.num_timesteps, self._steps)
        following = self._convert(next_observations)
        self._learner.store(self._convert(observations), rewards, following, terminated, truncated)

    def update(self) -> Measured:
        """Train, once enough steps are stored; return the algorithm's own metrics."""
        if not self._learner.train():
            return {}
        values = self._model.logger.name_to_value
        metrics = {f"agent/{name.removeprefix('train/').removeprefix('rollout/')}": x for name, x in values.items()}
        values.clear()
        return {name: float(value) for name, value in metrics.items() if isinstance(value, int | float | np.number)}

    def cut(self, which: Array) -> None:
        """End episodes: the next observations of these environments begin new ones."""
        self._learner.begin(which)

    def state_dict(self) -> dict[str, Any]:
        modules, variables = self._model._get_torch_save_params()
        return {
            "modules": {name: _attribute(self._model, name).state_dict() for name in modules},
            "variables": {name: _attribute(self._model, name).detach().clone() for name in variables},
            "steps": self._model.num_timesteps,
            "updates": self._model._n_updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, saved in state["modules"].items():
            _attribute(self._model, name).load_state_dict(saved)
        for name, saved in state["variables"].items():
            _attribute(self._model, name).data.copy_(saved)
        self._model.num_timesteps, self._model._n_updates = state["steps"], state["updates"]
        self._model._update_current_progress_remaining(self._model.num_timesteps, self._steps)
        log.warning("agent=sb3: checkpoints have no replay buffer and no rollout, so both begin empty.")


class _OffPolicy:
    """Steps of DQN, SAC and TD3: actions into a replay buffer, training every `train_freq` steps."""

    def __init__(self, model: Any) -> None:
        self._model, self.period = model, int(model.train_freq.frequency)
        self._stored: Array = np.zeros(0)  # actions as the replay buffer has them

    def act(self, inputs: Array) -> Array:
        """Choose actions to explore, and keep them as the replay buffer has them."""
        model = self._model
        model._last_obs = inputs
        actions, self._stored = model._sample_action(model.learning_starts, model.action_noise, len(inputs))
        return np.asarray(actions)

    def store(self, inputs: Array, rewards: Array, following: Array, terminated: Array, truncated: Array) -> None:
        """Add transitions to the replay buffer."""
        infos = [{"TimeLimit.truncated": bool(late)} for late in truncated & ~terminated]
        self._model.replay_buffer.add(inputs, following, self._stored, rewards, terminated | truncated, infos)
        self._model._on_step()

    def train(self) -> bool:
        """Take gradient steps after the first `learning_starts` steps; return whether any was taken."""
        model = self._model
        if model.replay_buffer.size() * model.n_envs <= model.learning_starts:
            return False
        gradient_steps = model.gradient_steps if model.gradient_steps > 0 else self.period
        model.train(gradient_steps=gradient_steps, batch_size=model.batch_size)
        return True

    def begin(self, which: Array) -> None:
        """Do nothing: this interface keeps nothing between steps."""


class _OnPolicy:
    """Steps of PPO: rollouts of `n_steps`, then training."""

    period = 1

    def __init__(self, model: Any) -> None:
        self._model = model
        self._begins: Array = np.ones(model.n_envs, np.bool_)
        self._chosen: tuple[Array, torch.Tensor, torch.Tensor] | None = None  # actions, values, log probabilities
        self._last: tuple[Array, Array] | None = None  # next observations and ends of the last step

    @torch.no_grad()
    def act(self, inputs: Array) -> Array:
        """Sample actions, and keep them with their values and probabilities; the environment gets them clipped."""
        actions, values, log_probs = self._model.policy(obs_as_tensor(inputs, self._model.device))
        self._chosen = actions.cpu().numpy(), values, log_probs
        space = self._model.action_space
        discrete = not isinstance(space, gym.spaces.Box)
        return self._chosen[0] if discrete else np.clip(self._chosen[0], space.low, space.high)

    @torch.no_grad()
    def store(self, inputs: Array, rewards: Array, following: Array, terminated: Array, truncated: Array) -> None:
        """Add a step to the rollout."""
        assert self._chosen is not None
        actions, values, log_probs = self._chosen
        late = truncated & ~terminated
        if late.any():  # the value of a truncated state is bootstrapped from its last observation
            ends = self._model.policy.predict_values(obs_as_tensor(following[late], self._model.device))
            rewards = rewards.copy()
            rewards[late] += self._model.gamma * ends.cpu().numpy().ravel()
        if isinstance(self._model.action_space, gym.spaces.Discrete):
            actions = actions.reshape(-1, 1)
        self._model.rollout_buffer.add(inputs, actions, rewards, self._begins, values, log_probs)
        self._begins = terminated | truncated
        self._last = following, self._begins

    def train(self) -> bool:
        """Train on a complete rollout and begin the next one; return whether it was complete."""
        model = self._model
        if not model.rollout_buffer.full:
            return False
        assert self._last is not None
        following, ends = self._last
        with torch.no_grad():
            values = model.policy.predict_values(obs_as_tensor(following, model.device))
        model.rollout_buffer.compute_returns_and_advantage(last_values=values, dones=ends)
        model.train()
        model.rollout_buffer.reset()
        return True

    def begin(self, which: Array) -> None:
        """Mark the next observations of these environments as the first of an episode."""
        self._begins = self._begins | which


class _Conversion:
    """Function from batches of observations to what a policy of Stable-Baselines3 takes."""

    def __init__(self, space: gym.Space[Any], policy: str) -> None:
        shape = space.shape or ()
        self._image = space.dtype == np.uint8 and len(shape) in (2, 3)
        convolutions = self._image and min(shape[:2]) >= SMALLEST_IMAGE
        self.policy = ("CnnPolicy" if convolutions else "MlpPolicy") if policy == "auto" else policy
        if self.policy == "CnnPolicy" and not convolutions:
            side = f"{SMALLEST_IMAGE}x{SMALLEST_IMAGE}"
            raise BadValueError("policy", f"CnnPolicy needs images of at least {side} pixels, not {space}: use auto")
        self._flat = self._image and self.policy == "MlpPolicy"
        self.space = space
        if self._flat:
            self.space = gym.spaces.Box(0, 1, (int(np.prod(shape)),), np.float32)
        elif self._image:
            self.space = gym.spaces.Box(0, 255, (*shape[2:], *shape[:2]) if shape[2:] else (1, *shape), np.uint8)

    def __call__(self, observations: Array) -> Array:
        if self._flat:
            return (observations.reshape(len(observations), -1) / 255).astype(np.float32)
        if self._image:
            images = observations if observations.ndim == 4 else observations[..., None]
            return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        return observations


class _Spaces(gym.Env[Any, Any]):
    """Stands for an environment where Stable-Baselines3 asks for the spaces of one."""

    def __init__(self, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.observation_space, self.action_space = observation_space, action_space


def _attribute(model: Any, path: str) -> Any:
    for name in path.split("."):
        model = getattr(model, name)
    return model
