"""`cfn eval RUN`: play episodes with a trained agent, and film them on request."""

import contextlib
import dataclasses
import re
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.checkpoints.stateful import without_state
from cfn.envs.checks import as_state
from cfn.envs.rendering import as_picture, prepare_rendering, render
from cfn.envs.stack import newest
from cfn.errors import FAULTS, UsageError
from cfn.runs.folder import Run
from cfn.training.evaluation import call
from cfn.training.loop import Training
from cfn.training.resume import config_of, restore
from cfn.training.video import MAX_FPS, Moment, Video
from cfn.types import Array

PROGRESS_SECONDS = 10.0
"""Seconds between lines on an episode that is not over."""


def play(folder: Path, episodes: int, film: bool, trusted: Sequence[str]) -> None:
    """Play episodes with the agent of the newest checkpoint; training and evaluations use other episode seeds.

    Args:
        folder: Run folder.
        episodes: Number of episodes.
        film: Whether to write a film to the run's `videos/`.
        trusted: Classes and modules outside this package that the config may name.
    """
    prepare_rendering()
    run = Run.open(folder)
    # Any device will do, compiling would take longer than playing, and with one step no replay buffer has to fit.
    config = dataclasses.replace(config_of(run, trusted), device="auto", compile=False, bf16=False, steps=1)
    one = dataclasses.replace(config.eval, episodes=1)
    config = dataclasses.replace(config, env_workers=1, eval=one)
    training, checkpoint = restore(run, config, lambda training, saved: training.load_learned(saved.read_learned))
    if name := without_state(training.agent, Agent):
        raise UsageError(
            f"{run.shown} cannot be played: its agent {name} has no state_dict, so its checkpoint does not contain "
            "what the agent has learned: add state_dict and load_state_dict to the agent, and train again"
        )
    untrained = " (untrained: the bonus has no state_dict)" if without_state(training.bonus, Bonus) else ""
    env = _rendered(training, run) if film else training.make_env()
    fps = min(int(env.metadata.get("render_fps") or MAX_FPS), MAX_FPS)
    video = Video(run.files.video(checkpoint.step), run.setting, fps)
    print(f"{run.shown} at step {checkpoint.step:,}:", flush=True)
    scores = []
    reported = time.monotonic()
    try:
        for number in range(1, episodes + 1):
            moments: list[Moment] = []
            seed = seeding.integer(run.seed, "watch", number)
            playing = episode(training.agent, training.bonus, env, config.frame_stack, seed)
            for moment in islice(playing, training.evaluate.max_steps + 1):
                moments.append(moment)
                if film:
                    video.add(number, moments)
                    moments[-1] = moment._replace(picture=None)  # pictures are large
                if (now := time.monotonic()) - reported > PROGRESS_SECONDS:
                    reported = now
                    of = f"{number} of {episodes}: step {len(moments) - 1:,} of at most {training.evaluate.max_steps:,}"
                    print(f"episode {of}", flush=True)
            scores.append(moments[-1].score)
            bonus = float(np.mean([m.bonus for m in moments]))
            print(
                f"episode {number}: return {scores[-1]:g}, {len(moments) - 1} steps, mean bonus {bonus:.3g}{untrained}",
                flush=True,
            )
        video.finish()
    finally:
        video.close()
        with contextlib.suppress(*FAULTS):  # closing a failed environment may fail, too
            env.close()
    print(f"mean return {np.mean(scores):g} of {len(scores)} episodes")
    if film:
        print(f"The film: {Path(run.shown) / video.path.relative_to(run.folder)}")


def _rendered(training: Training, run: Run) -> gym.Env[Any, Any]:
    """Return an environment that draws pictures; raise `UsageError` if there is none."""
    reason = "it has no render_mode=rgb_array"
    try:
        env = training.make_env("rgb_array")
        if env.render_mode == "rgb_array":
            return env
    except UsageError as error:  # without pictures it can be created: the training has done so
        if not re.search("render_?mode", str(error)):
            reason = f"with render_mode=rgb_array, {error}"
    raise UsageError(f"{run.env} cannot be filmed: {reason}: leave --video out")


def episode(agent: Agent, bonus: Bonus, env: gym.Env[Any, Any], frame_stack: int, seed: int) -> Iterator[Moment]:
    """Play an episode without exploration or learning, and yield each step; raise `BrokenEnvError` if it fails.

    Args:
        agent: Agent to play with.
        bonus: Bonus to show beside each state.
        env: Environment; rendered if it has a render mode.
        frame_stack: Number of frames in an observation.
        seed: Seed of the episode.
    """
    observation, info = call("the environment", env, "reset", seed=seed)
    score, ended = 0.0, False
    yield Moment(_render(env), score, _novelty(bonus, observation, info, frame_stack))
    while not ended:
        (action,) = agent.act(observation[None], explore=False)
        observation, reward, terminated, truncated, info = call("the environment", env, "step", action)
        score, ended = score + reward, terminated or truncated
        yield Moment(_render(env), score, _novelty(bonus, observation, info, frame_stack))


def _novelty(bonus: Bonus, observation: Array, info: dict[str, Any], frame_stack: int) -> float:
    states = [as_state(info["state"])] if "state" in info else None
    asked = None if bonus.counts_actions else states
    return float(bonus.novelty(newest(observation[None], frame_stack), asked)[0])


def _render(env: gym.Env[Any, Any]) -> Array | None:
    return None if env.render_mode is None else as_picture(render(env))
