"""Atari games under the paper's protocol (Machado et al., 2018), with the true state of Montezuma's Revenge.

Several games are stepped one after another, or by several processes (`env_workers`). ale-py's `AtariVectorEnv` is up to
twice as fast (1, 4 or 8 games on two cores), but it does not report the RAM, which holds the true state, and it resets
episodes without seeds. There is little to gain: with the coin-flip bonus on a CPU, the games take 2% of the time of a
run. `nox -s bench` measures all three.
"""

import difflib
from typing import Annotated, Any

import gymnasium as gym
from annotated_types import Le

from cfn.envs.registry import register_games
from cfn.envs.true_states import WithState
from cfn.errors import BadValueError, UsageError
from cfn.types import Positive, Probability, State

FRAME_SKIP = 4
"""Frames per step."""
SIDE = 84
"""Height and width of an observation, in pixels."""
MOST_STEPS = (2**31 - 1) // FRAME_SKIP
"""Highest step limit: ALE counts frames in 32 bits."""
MONTEZUMA = "MontezumaRevenge"
X, Y, ROOM = 42, 43, 3
"""Indices into the RAM of Montezuma's Revenge."""


def make(
    game: str = MONTEZUMA,
    sticky: Probability = 0.25,
    max_steps: Annotated[Positive, Le(MOST_STEPS)] = 27_000,
    render_mode: str | None = None,
) -> gym.Env[Any, Any]:
    """Create a game: 84x84 grey images, four frames per step, sticky actions, all 18 actions, no end on a lost life.

    Montezuma's Revenge reports (x, y, room) as its true state; other games report none.

    Args:
        game: Name of the game in ALE, such as `MontezumaRevenge` or `Breakout`.
        sticky: Probability that a frame repeats the previous action instead of the chosen one.
        max_steps: Steps until truncation.
        render_mode: `rgb_array` or None.
    """
    register_games()
    game_id = f"ALE/{game}-v5"
    if game_id not in gym.registry:
        games = [name.removeprefix("ALE/").removesuffix("-v5") for name in gym.registry if name.startswith("ALE/")]
        close = difflib.get_close_matches(game, games, n=5, cutoff=0.4)
        hint = f"did you mean {', '.join(close)}?" if close else f"choose from {', '.join(sorted(games))}"
        raise BadValueError("game", f"ALE has no game {game!r}; {hint}")
    try:
        env: gym.Env[Any, Any] = gym.make(
            game_id,
            frameskip=1,  # AtariPreprocessing skips frames, and takes the maximum of the last two
            repeat_action_probability=sticky,
            full_action_space=True,
            max_num_frames_per_episode=max_steps * FRAME_SKIP,
            disable_env_checker=True,
            render_mode=render_mode,
        )
    except (gym.error.Error, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"env.game={game}: its ROM cannot be loaded ({reason}): run pip install --force-reinstall ale-py"
        ) from error
    env = gym.wrappers.AtariPreprocessing(env, noop_max=0, frame_skip=FRAME_SKIP, screen_size=SIDE)
    if game != MONTEZUMA:
        return env
    ale = env.unwrapped.ale  # type: ignore[attr-defined]

    def state(_: Any) -> State:
        ram = ale.getRAM()
        return int(ram[X]), int(ram[Y]), int(ram[ROOM])

    return WithState(env, state, names=("x", "y", "room"))
