"""`cfn eval RUN`: a trained agent plays, and if asked is filmed, with its score and its bonus drawn beside it."""

import dataclasses
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import gymnasium as gym
import numpy as np

from cfn import seeding
from cfn.agents.base import Agent
from cfn.bonuses.base import Bonus
from cfn.envs.batch import as_state
from cfn.envs.stack import newest
from cfn.errors import UsageError
from cfn.resume import read_config, restored
from cfn.run import Run
from cfn.types import Array

log = logging.getLogger(__name__)

HEIGHT = 360
"""Of a film, in pixels; small pictures are enlarged to it."""
PANEL = 320
"""The width of what is drawn beside the picture."""
MOST_FPS = 30
LONGEST = 2000
"""Steps that a curve shows at the most, the last ones."""
DARK, LIGHT, GREY = (24, 24, 28), (235, 235, 235), (140, 140, 140)
SCORE, NOVELTY = (221, 119, 17), (90, 150, 230)


class Moment(NamedTuple):
    """One step of an episode: the picture, the score so far, and what the bonus says of the state."""

    picture: Array | None
    score: float
    bonus: float


def episode(agent: Agent, bonus: Bonus, env: gym.Env[Any, Any], stack: int, seed: int) -> Iterator[Moment]:
    """Play an episode as the agent acts when it does not explore; nothing is learned from it.

    Args:
        agent: Plays.
        bonus: Is asked about every state.
        env: One environment; its pictures are taken if it has a render mode.
        stack: Frames in an observation.
        seed: The episode's.
    """
    observation, info = env.reset(seed=seed)
    score, ended = 0.0, False
    yield Moment(_picture(env), score, _novelty(bonus, observation, info, stack))
    while not ended:
        (action,) = agent.act(observation[None], explore=False)
        observation, reward, terminated, truncated, info = env.step(action)
        score, ended = score + float(reward), terminated or truncated
        yield Moment(_picture(env), score, _novelty(bonus, observation, info, stack))


def watch(folder: Path, episodes: int, video: bool, trusted: Sequence[str]) -> None:
    """Let the agent of a run's newest checkpoint play, in episodes that neither training nor evaluations have seen.

    Args:
        folder: The run's.
        episodes: How many.
        video: Whether to film them, into the run's `videos/`.
        trusted: Classes and modules of the user's own that the run's config may name.
    """
    run = Run.open(folder)
    # On whatever machine this is, and at once; and as nothing is remembered, no buffer need fit.
    config = dataclasses.replace(
        read_config(run, trusted), device="auto", compile=False, bf16=False, steps=1, num_envs=1
    )
    config = dataclasses.replace(config, eval=dataclasses.replace(config.eval, episodes=1))
    training, checkpoint = restored(run, config, lambda training, saved: training.load_learned(saved.read_learned))
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # or pygame, which draws some tasks, complains of having none
    env = training.make_env("rgb_array" if video else None)
    if video and env.render_mode != "rgb_array":
        raise UsageError(f"{run.env} draws no pictures of itself (render_mode=rgb_array): leave --video out")
    fps = min(int(env.metadata.get("render_fps") or MOST_FPS), MOST_FPS)
    film = Film(run.folder / "videos" / f"step_{checkpoint.step:09}.mp4", run.setting, fps)
    print(f"{run.shown} at step {checkpoint.step:,}:", flush=True)
    scores = []
    try:
        for number in range(1, episodes + 1):
            moments: list[Moment] = []
            seed = seeding.integer(run.seed, "watch", number)
            for moment in episode(training.agent, training.bonus, env, config.frame_stack, seed):
                moments.append(moment)
                if video:
                    film.add(number, moments)
                    moments[-1] = moment._replace(picture=None)  # filmed, and large
            scores.append(moments[-1].score)
            bonus = float(np.mean([m.bonus for m in moments]))
            print(
                f"episode {number}: return {scores[-1]:g}, {len(moments) - 1} steps, mean bonus {bonus:.3g}", flush=True
            )
        film.finish()
    finally:
        film.close()
        env.close()
    print(f"mean return {np.mean(scores):g} of {len(scores)} episodes")
    if video:
        print(f"The film: {Path(run.shown) / film.path.relative_to(run.folder)}")


def _novelty(bonus: Bonus, observation: Array, info: dict[str, Any], stack: int) -> float:
    states = [as_state(info["state"])] if "state" in info else None
    return float(bonus.novelty(newest(observation[None], stack), states)[0])


def _picture(env: gym.Env[Any, Any]) -> Array | None:
    if env.render_mode is None:
        return None
    try:
        picture: Any = env.render()
    except gym.error.DependencyNotInstalled as error:
        raise UsageError(f"the environment cannot draw itself: {' '.join(str(error).split())}") from error
    if not isinstance(picture, np.ndarray) or picture.ndim != 3:
        raise UsageError(f"the environment draws no picture of itself (render gave {type(picture).__name__})")
    return picture


class Film:
    """An MP4 file to which moments are added, and which is there when it is whole.

    Args:
        path: Where it will be.
        title: What stands above the panel.
        fps: Pictures per second.
    """

    def __init__(self, path: Path, title: str, fps: int) -> None:
        self.path, self._title, self._fps = path, title, fps
        self._part = path.with_name(f".{path.name}")
        self._writer: Any = None
        self._size, self._frames = (0, 0), 0

    def add(self, number: int, moments: Sequence[Moment]) -> None:
        """Film the newest of an episode's moments."""
        import imageio_ffmpeg  # brings ffmpeg; slow to import, and not every evaluation is filmed

        picture = moments[-1].picture
        assert picture is not None, "the environment has a render mode"
        left = _enlarged(picture)
        frame = np.concatenate([left, panel(self._title, number, moments)], axis=1)
        if self._writer is None:
            self._size = (frame.shape[1] - frame.shape[1] % 2, HEIGHT)  # the format wants even sides
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"{self.path.parent} cannot be made: {error.strerror}") from error
            self._writer = imageio_ffmpeg.write_frames(
                str(self._part),
                self._size,
                fps=self._fps,
                codec="libx264",
                macro_block_size=2,
                ffmpeg_log_level="quiet",
            )
            self._writer.send(None)
        try:
            self._writer.send(np.ascontiguousarray(frame[:, : self._size[0]]))
        except OSError as error:
            raise self._unwritten() from error
        self._frames += 1

    def finish(self) -> None:
        """The film is whole: what ffmpeg could not write, it does not tell, so its pictures are counted."""
        import imageio_ffmpeg

        if self._writer is None:
            return
        self._writer.close()
        try:
            whole = imageio_ffmpeg.count_frames_and_secs(str(self._part))[0] == self._frames
        except (OSError, RuntimeError):
            whole = False
        if not whole:
            raise self._unwritten()
        self._part.replace(self.path)

    def close(self) -> None:
        """Let go of a film that was broken off."""
        if self._writer is not None:
            self._writer.close()
            self._part.unlink(missing_ok=True)

    def _unwritten(self) -> UsageError:
        return UsageError(f"{self.path} cannot be written: is the disk full, or read-only?")


def _enlarged(picture: Array) -> Array:
    """The picture at the film's height: few pixels are kept sharp, many are smoothed."""
    height, width = picture.shape[:2]
    method = cv2.INTER_NEAREST if height < HEIGHT / 2 else cv2.INTER_AREA
    size = (max(round(width * HEIGHT / height), 2), HEIGHT)
    enlarged: Array = cv2.resize(np.ascontiguousarray(picture[..., :3], np.uint8), size, interpolation=method)
    return enlarged


def panel(title: str, number: int, moments: Sequence[Moment]) -> Array:
    """Step, score and bonus in numbers, and score and bonus over the last steps as curves."""
    image = np.full((HEIGHT, PANEL, 3), DARK, np.uint8)
    now, last = moments[-1], moments[-LONGEST:]
    _write(image, _fitting(title), 22, LIGHT, 0.42)
    _write(image, f"episode {number}   step {len(moments) - 1}", 44, GREY, 0.42)
    _write(image, f"score {now.score:g}", 76, SCORE, 0.6)
    _curve(image, [m.score for m in last], 90, 190, SCORE)
    _write(image, f"bonus {now.bonus:.3g}", 228, NOVELTY, 0.6)
    _curve(image, [m.bonus for m in last], 242, 342, NOVELTY)
    return image


def _fitting(text: str, width: int = 42) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _write(image: Array, text: str, bottom: int, colour: tuple[int, int, int], size: float) -> None:
    cv2.putText(image, text, (14, bottom), cv2.FONT_HERSHEY_SIMPLEX, size, colour, 1, cv2.LINE_AA)


def _curve(image: Array, values: Sequence[float], top: int, bottom: int, colour: tuple[int, int, int]) -> None:
    """Values from left to right, the lowest at the bottom and the highest at the top."""
    cv2.line(image, (14, bottom), (PANEL - 14, bottom), GREY, 1)
    y = np.asarray(values)
    low, high = min(float(y.min()), 0.0), max(float(y.max()), 1e-9)
    x = np.linspace(14, PANEL - 14, len(y)) if len(y) > 1 else np.array([14.0])
    points = np.stack([x, bottom - (y - low) / (high - low) * (bottom - top)], axis=1).round().astype(np.int32)
    cv2.polylines(image, [points], False, colour, 1, cv2.LINE_AA)
