"""Films of episodes: the environment's picture with score and bonus drawn next to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from cfn.errors import UsageError
from cfn.types import Array

HEIGHT = 360
"""Height of a film in pixels; smaller pictures are enlarged."""
PANEL_WIDTH = 320
"""Width of the panel next to the picture, in pixels."""
MAX_FPS = 30
MAX_CURVE_STEPS = 2000
"""Maximum number of steps that a curve shows; the last ones."""
DARK, LIGHT, GREY = (24, 24, 28), (235, 235, 235), (140, 140, 140)
SCORE, NOVELTY = (221, 119, 17), (90, 150, 230)


class Moment(NamedTuple):
    """One step of an episode: the picture, the score so far, and the bonus of the state."""

    picture: Array | None
    score: float
    bonus: float


class Video:
    """An MP4 file, which appears under its name when it is complete.

    Args:
        path: Path of the file.
        title: Title of the panel.
        fps: Frames per second.
    """

    def __init__(self, path: Path, title: str, fps: int) -> None:
        self.path, self._title, self._fps = path, title, fps
        self._temporary = path.with_name(f".{path.name}")
        self._writer: Any = None
        self._size, self._frames = (0, 0), 0

    def add(self, number: int, moments: Sequence[Moment]) -> None:
        """Add a frame for the last of an episode's moments."""
        import imageio_ffmpeg  # slow to import, and most evaluations are not filmed

        picture = moments[-1].picture
        assert picture is not None, "the environment has a render mode"
        left = _enlarged(picture)
        frame = np.concatenate([left, draw_panel(self._title, number, moments)], axis=1)
        if self._writer is None:
            self._size = (frame.shape[1] - frame.shape[1] % 2, HEIGHT)  # the codec requires even sizes
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"{self.path.parent} cannot be created: {error.strerror}") from error
            self._writer = imageio_ffmpeg.write_frames(
                str(self._temporary),
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
            raise self._write_error() from error
        self._frames += 1

    def finish(self) -> None:
        """Complete the file. ffmpeg does not report failed writes, so the frames are counted."""
        import imageio_ffmpeg

        if self._writer is None:
            return
        self._writer.close()
        try:
            complete = imageio_ffmpeg.count_frames_and_secs(str(self._temporary))[0] == self._frames
        except (OSError, RuntimeError):
            complete = False
        if not complete:
            raise self._write_error()
        self._temporary.replace(self.path)

    def close(self) -> None:
        """Remove an incomplete file."""
        if self._writer is not None:
            self._writer.close()
            self._temporary.unlink(missing_ok=True)

    def _write_error(self) -> UsageError:
        return UsageError(f"{self.path} cannot be written: is the disk full, or read-only?")


def _enlarged(picture: Array) -> Array:
    """Return a picture at the height of the film; small pictures keep sharp pixels."""
    height, width = picture.shape[:2]
    method = cv2.INTER_NEAREST if height < HEIGHT / 2 else cv2.INTER_AREA
    size = (max(round(width * HEIGHT / height), 2), HEIGHT)
    enlarged: Array = cv2.resize(np.ascontiguousarray(picture), size, interpolation=method)
    return enlarged


def draw_panel(title: str, number: int, moments: Sequence[Moment]) -> Array:
    """Return the panel: step, score and bonus as numbers, and curves of score and bonus."""
    image = np.full((HEIGHT, PANEL_WIDTH, 3), DARK, np.uint8)
    now, last = moments[-1], moments[-MAX_CURVE_STEPS:]
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
    """Draw values from left to right, scaled to the full height."""
    cv2.line(image, (14, bottom), (PANEL_WIDTH - 14, bottom), GREY, 1)
    y = np.asarray(values)
    low, high = min(float(y.min()), 0.0), max(float(y.max()), 1e-9)
    x = np.linspace(14, PANEL_WIDTH - 14, len(y)) if len(y) > 1 else np.array([14.0])
    points = np.stack([x, bottom - (y - low) / (high - low) * (bottom - top)], axis=1).round().astype(np.int32)
    cv2.polylines(image, [points], False, colour, 1, cv2.LINE_AA)
