"""Atari games under the paper's protocol (Machado et al., 2018), and where Montezuma's Revenge keeps its true state.

Several run one after another. ale-py's `AtariVectorEnv` is faster (up to twice, with 1, 4 or 8 games on two
cores), but it reports no RAM, so no true states, and restarts episodes by itself, without their seeds; the
games are 2% of a run's time with the coin-flip bonus on a CPU, so there is little to gain (`nox -s bench` tells both).
"""

import difflib
from typing import Annotated, Any

import gymnasium as gym
from annotated_types import Le

from cfn.envs.generic import WithState
from cfn.errors import BadValueError, UsageError
from cfn.types import Positive, Probability, State

FRAME_SKIP = 4
SIDE = 84
MOST_STEPS = (2**31 - 1) // FRAME_SKIP
"""ALE counts frames in 32 bits."""
MONTEZUMA = "MontezumaRevenge"
X, Y, ROOM = 42, 43, 3
"""Bytes of Montezuma's RAM."""


def make(
    game: str = MONTEZUMA,
    sticky: Probability = 0.25,
    max_steps: Annotated[Positive, Le(MOST_STEPS)] = 27_000,
    render_mode: str | None = None,
) -> gym.Env[Any, Any]:
    """Make a game: 84x84 grey images, four frames to a step, sticky actions, all 18 actions, no end on a lost life.

    Montezuma's Revenge reports (x, y, room) as its true state; what other games' RAM means is not known here.

    Args:
        game: As ALE spells it: `MontezumaRevenge`, `Breakout`.
        sticky: The probability that a frame repeats the action before, whatever was chosen.
        max_steps: Steps until truncation.
        render_mode: `rgb_array` or None.
    """
    import ale_py  # slow to import, and most environments need none

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # it greets everyone
    gym.register_envs(ale_py)
    game_id = f"ALE/{game}-v5"
    if game_id not in gym.registry:
        games = [name.removeprefix("ALE/").removesuffix("-v5") for name in gym.registry if name.startswith("ALE/")]
        close = difflib.get_close_matches(game, games, n=5, cutoff=0.4)
        hint = f"close to it: {', '.join(close)}" if close else f"there are {', '.join(sorted(games))}"
        raise BadValueError("game", f"ALE knows no game {game!r}; {hint}")
    try:
        env: gym.Env[Any, Any] = gym.make(
            game_id,
            frameskip=1,  # the wrapper skips, and shows the brighter of the last two frames
            repeat_action_probability=sticky,
            full_action_space=True,
            max_num_frames_per_episode=max_steps * FRAME_SKIP,
            disable_env_checker=True,
            render_mode=render_mode,
        )
    except (gym.error.Error, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"env.game={game}: its ROM cannot be loaded ({reason}): pip install --force ale-py") from error
    env = gym.wrappers.AtariPreprocessing(env, noop_max=0, frame_skip=FRAME_SKIP, screen_size=SIDE)
    if game != MONTEZUMA:
        return env
    ale = env.unwrapped.ale  # type: ignore[attr-defined]

    def state(_: Any) -> State:
        ram = ale.getRAM()
        return int(ram[X]), int(ram[Y]), int(ram[ROOM])

    return WithState(env, state, view=lambda frame: frame, names=("x", "y", "room"))
