"""Visit counts within episodes, one table per environment, of hashed images or binned vectors."""

from typing import Any

import gymnasium as gym
import numpy as np

from cfn.bonuses.inputs import ObservationCheck
from cfn.errors import BadInputError
from cfn.nn import networks
from cfn.replay.content_index import Digest, content_digest
from cfn.types import Array


class EpisodicCounts:
    """Counts how often each observation was seen in the current episode of each environment.

    Images are equal if all their pixels are. Vectors are equal if their numbers fall into the same bins.

    Args:
        bonus: Name of the bonus that counts, for messages.
        observation_space: Images (uint8, height x width) or vectors.
        num_envs: Number of environments.
        bin: Width of the bins of vectors.

    Attributes:
        check: Check of the observations.
    """

    def __init__(self, bonus: str, observation_space: gym.Space[Any], num_envs: int, bin: float) -> None:
        self._is_image = networks.image_shape(observation_space) is not None
        self._bonus, self._bin, self.check = bonus, bin, ObservationCheck(observation_space)
        self._counts: list[dict[Digest, int]] = [{} for _ in range(num_envs)]

    def clear(self, begins: Array) -> None:
        """Reset the counts of environments in which a new episode begins."""
        require_rows(self._bonus, begins, len(self._counts))
        for row in np.flatnonzero(begins).tolist():
            self._counts[row] = {}

    def visit(self, observations: Array, rows: Array | None = None) -> Array:
        """Count one visit to each observation, and return the counts after it.

        Args:
            observations: Observations, one row per environment.
            rows: Environments to count, as a mask; None: all. The counts of the others are 0.
        """
        observations = self.check(observations)
        require_rows(self._bonus, observations, len(self._counts))
        counts = np.zeros(len(observations), np.int64)
        for row in range(len(observations)) if rows is None else np.flatnonzero(rows).tolist():
            digest, table = self._digest(observations[row]), self._counts[row]
            counts[row] = table[digest] = table.get(digest, 0) + 1
        return counts

    def _digest(self, observation: Array) -> Digest:
        bins = observation if self._is_image else np.floor(observation / self._bin).astype(np.int64)
        return content_digest(bins.tobytes())

    def state_dict(self) -> list[dict[str, Array]]:
        return [
            {"digests": np.array(list(table), np.int64).reshape(-1, 2), "counts": np.array(list(table.values()))}
            for table in self._counts
        ]

    def load_state_dict(self, state: list[dict[str, Array]]) -> None:
        if len(state) != len(self._counts):
            raise ValueError(f"the episodes of {len(state)} environments were saved, not of {len(self._counts)}")
        self._counts = [
            {(low, high): int(count) for (low, high), count in zip(s["digests"].tolist(), s["counts"], strict=True)}
            for s in state
        ]


def require_rows(bonus: str, observations: Array, num_envs: int) -> None:
    """Raise `BadInputError` unless there is one row per environment.

    Args:
        bonus: Name of the bonus, for the message.
        observations: Array with one row per environment.
        num_envs: Number of environments.
    """
    if len(observations) != num_envs:
        raise BadInputError(
            f"bonus={bonus} remembers the episode of each environment, and was made for {num_envs}, not for "
            f"{len(observations)}: construct it with num_envs={len(observations)}"
        )
