import sys

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import pytest
from resuming import CARTPOLE, GRID, MONTEZUMA, ROBOT, SMALL_CFN, VECTOR_CFN, claimed
from tasks import drawing

from cfn.agents.base import Agent
from cfn.agents.random import RandomAgent
from cfn.bonuses.base import Bonus
from cfn.bonuses.none import NoBonus
from cfn.checkpoints import encoding
from cfn.checkpoints.store import Checkpoints
from cfn.envs import making
from cfn.envs.arrays import with_arrays
from cfn.envs.gridworld import Gridworld
from cfn.errors import UsageError
from cfn.nn import compiling, device, memory_limits
from cfn.runs.folder import Run
from cfn.training.play import play
from cfn.training.video import MAX_CURVE_STEPS, PANEL_WIDTH, Moment, Video, draw_panel


def trained(folder, *overrides):
    run, training = claimed(folder, *overrides, "steps=60", "checkpoint.every=30", "eval.every=60")
    training.run(run)


def frames(path):
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    return [np.frombuffer(frame, np.uint8).reshape(height, width, 3).copy() for frame in reader]


def test_episodes_are_told_and_filmed(tmp_path, capsys):
    trained(tmp_path, *GRID, *SMALL_CFN, "env.max_steps=20")
    play(tmp_path, episodes=3, film=True, trusted=[])
    said = capsys.readouterr().out
    first, *episodes, mean, _ = said.splitlines()
    assert first.endswith("at step 60:")
    assert [line.partition(":")[0] for line in episodes] == ["episode 1", "episode 2", "episode 3"]
    assert mean.startswith("mean return ")
    assert [path.name for path in (tmp_path / "videos").iterdir()] == ["step_000000060.mp4"]
    film = frames(tmp_path / "videos" / "step_000000060.mp4")
    assert len(film) == 3 * 21
    assert film[0].shape == (360, 360 + PANEL_WIDTH, 3)
    assert (film[0][:, :360].max(), film[-1][300:, 360:].std() > 5) == (255, True), "the agent, and a curve"


def test_watching_changes_nothing_and_can_be_had_again(tmp_path, capsys):
    trained(tmp_path, *GRID, *SMALL_CFN)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    play(tmp_path, 2, False, [])
    first = capsys.readouterr().out
    play(tmp_path, 2, False, [])
    assert capsys.readouterr().out == first
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


@pytest.mark.thorough
@pytest.mark.parametrize(
    "overrides",
    [
        (*MONTEZUMA, *SMALL_CFN, "env.max_steps=12"),
        ("env=taxi5", "env.image_size=34", "agent=random", "bonus=count", "env.max_steps=12"),
        ("env=fetch_push", *ROBOT, *VECTOR_CFN, "env.max_steps=12"),
        ("env=hammer", *ROBOT, *VECTOR_CFN, "env.max_steps=12"),
        ("env=antmaze", *ROBOT, *VECTOR_CFN, "env.max_steps=12"),
        ("env=gym", "env.id=Pendulum-v1", "agent=sac", *ROBOT, "bonus=none", "env.max_steps=12"),
        ("env=gym", "env.id=HalfCheetah-v5", "agent=sac", *ROBOT, "bonus=none", "env.max_steps=12"),
    ],
    ids=["montezuma", "taxi", "fetch", "adroit", "ant", "pendulum", "mujoco"],
)
def test_other_environments_are_filmed_too(tmp_path, overrides):
    trained(tmp_path, *overrides)
    with drawing():
        play(tmp_path, 1, True, [])
    film = frames(tmp_path / "videos" / "step_000000060.mp4")
    assert len(film) == 13
    assert film[-1][:, :-PANEL_WIDTH].std() > 10


def test_a_film_that_is_broken_off_is_not_left_behind(tmp_path, monkeypatch):
    trained(tmp_path, *GRID, "bonus=none", "env.max_steps=20")
    (tmp_path / "videos").touch()
    with pytest.raises(UsageError, match="videos cannot be created: File exists"):
        play(tmp_path, 1, True, [])
    (tmp_path / "videos").unlink()
    add, filmed = Video.add, []

    def interrupted(film, number, moments):
        add(film, number, moments)
        filmed.append(number)
        if len(filmed) == 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(Video, "add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, 2, True, [])
    assert list((tmp_path / "videos").iterdir()) == []


def test_an_environment_that_cannot_draw_itself_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)  # as where it is not installed
    trained(tmp_path, *CARTPOLE, "bonus=none")
    play(tmp_path, 1, False, [])
    with pytest.raises(UsageError, match="the environment cannot be rendered: pygame is not installed"):
        play(tmp_path, 1, True, [])


def test_an_environment_without_pictures_is_told(tmp_path, monkeypatch):
    trained(tmp_path, *GRID, "bonus=none", "env.max_steps=20")
    monkeypatch.setattr(making, "make", lambda *_, render_mode=None: with_arrays(Gridworld(7, 14)))
    with pytest.raises(UsageError, match="gridworld_small cannot be filmed"):
        play(tmp_path, 1, True, [])


def test_a_film_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    trained(tmp_path, *GRID, "bonus=none", "env.max_steps=20")
    monkeypatch.setattr(imageio_ffmpeg, "count_frames_and_secs", lambda path: (3, 1.0))
    with pytest.raises(UsageError, match=r"step_.*\.mp4 cannot be written: is the disk full"):
        play(tmp_path, 1, True, [])
    assert list((tmp_path / "videos").iterdir()) == []


@pytest.mark.parametrize("moments", [1, 2, 5000])
def test_the_panel_draws_any_episode(moments):
    drawn = draw_panel("a title " * 20, 1, [Moment(None, -float(i), 1 / (i + 1)) for i in range(moments)])
    assert drawn.shape == (360, PANEL_WIDTH, 3)
    assert drawn.std() > 5


def test_the_command_names_what_is_wrong(call, tmp_path):
    done = call("eval", "nowhere")
    assert done.returncode == 1
    assert done.stderr == "cfn: nowhere: there is no such folder\n"
    done = call("eval", "nowhere", "--episodes", "0")
    assert done.returncode == 2
    assert "0 is not a whole number of at least 1" in done.stderr
    with pytest.raises(UsageError, match="is not a run folder"):
        Run.open(tmp_path)


def test_curves_show_the_last_steps_and_look_at_no_others():
    class Unread(list):
        def __iter__(self):
            raise AssertionError("a film of a long episode would take for ever")

    early, late = [Moment(None, 9.0, 9.0)] * 500, [Moment(None, i / 7, 1 / (i + 1)) for i in range(MAX_CURVE_STEPS)]
    other = [Moment(None, -3.0, 0.0)] * 500
    assert (draw_panel("a title", 1, Unread(early + late)) == draw_panel("a title", 1, Unread(other + late))).all()


def test_an_agent_is_watched_without_what_only_training_is_faster_with(tmp_path, monkeypatch):
    trained(tmp_path, *GRID, *SMALL_CFN, "bf16=true")
    asked = []
    monkeypatch.setattr(device, "use_bf16", lambda networks, device: asked.append("bf16"))
    monkeypatch.setattr(compiling, "require_compiler", lambda device: asked.append("compile"))
    play(tmp_path, 1, False, [])
    assert asked == []


def test_no_buffer_need_fit_to_watch(tmp_path, monkeypatch, capsys):
    trained(tmp_path, *GRID, *SMALL_CFN)
    monkeypatch.setattr(memory_limits, "available", lambda: 2000)
    play(tmp_path, 1, False, [])
    assert "mean return" in capsys.readouterr().out


def test_a_run_that_goes_on_meanwhile_is_watched(tmp_path, monkeypatch, capsys):
    """Its checkpoint is removed for a newer one while it is read."""
    trained(tmp_path, *GRID, *SMALL_CFN, "checkpoint.keep=1")
    running = Checkpoints(tmp_path / "checkpoints", keep=1)
    saved = running.latest()
    parts = {name: saved.read(name) for name in saved._parts}
    opened = []

    def later(reader, chunks, small):
        if not opened:
            opened.append(1)
            running.save(90, parts)
            raise FileNotFoundError
        read(reader, chunks, small)

    read = encoding.Reader.__init__
    monkeypatch.setattr(encoding.Reader, "__init__", later)
    play(tmp_path, 1, False, [])
    assert "at step 90:" in capsys.readouterr().out


GRIDWORLD = ("env=gridworld_small", "env.size=7", "env.image_size=14")


class Forgetful(RandomAgent):
    """An agent of a user's that has no state_dict."""

    state_dict, load_state_dict = Agent.state_dict, Agent.load_state_dict


def test_an_agent_whose_state_was_not_saved_is_not_played(tmp_path, monkeypatch):
    trained(tmp_path, *GRIDWORLD, "agent=random", "bonus=none")
    monkeypatch.setattr("cfn.agents.random.RandomAgent", Forgetful)
    with pytest.raises(UsageError, match="cannot be played: its agent Forgetful has no state_dict"):
        play(tmp_path, 1, False, [])


def test_a_bonus_whose_state_was_not_saved_is_marked_on_every_line(tmp_path, monkeypatch, capsys):
    trained(tmp_path, *GRIDWORLD, "agent=random", "bonus=none")
    monkeypatch.setattr(NoBonus, "state_dict", Bonus.state_dict)
    play(tmp_path, 2, False, [])
    episodes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("episode")]
    assert len(episodes) == 2
    assert all(line.endswith("(untrained: the bonus has no state_dict)") for line in episodes)


def test_episodes_end_at_the_limit_of_evaluations(tmp_path, capsys):
    trained(tmp_path, *GRIDWORLD, "agent=random", "bonus=none", "eval.max_steps=3")
    play(tmp_path, 1, False, [])
    assert "return 0, 3 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda env, action: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda env, action: (env._image(), float("nan"), False, False, {}), "ValueError: its reward is nan"),
    ],
    ids=["error", "nan"],
)
def test_an_environment_that_fails_while_it_is_watched_is_a_sentence(tmp_path, monkeypatch, step, reason):
    trained(tmp_path, *GRIDWORLD, "agent=random", "bonus=none")
    monkeypatch.setattr(Gridworld, "step", step)
    with pytest.raises(UsageError) as failed:
        play(tmp_path, 1, False, [])
    assert str(failed.value) == f"the environment failed in step() ({reason})"


class Unseen(Gridworld):
    """Has no pictures: its constructor does not take `render_mode`, as popgym's."""

    def __init__(self):
        super().__init__(7, 14)


@pytest.mark.parametrize("take", [{}, {"render_mode": None}], ids=["refuses", "ignores"])
def test_an_environment_that_never_draws_is_not_filmed(take, tmp_path, monkeypatch):
    gym.register("Unseen-v0", entry_point=lambda **keys: refusing(Unseen(), keys, take), max_episode_steps=5)
    try:
        trained(tmp_path, "env=gym", "env.id=Unseen-v0", "agent=random", "bonus=none", "tracker=none")
        with pytest.raises(UsageError, match=r"^gym cannot be filmed: it has no render_mode=rgb_array: leave"):
            play(tmp_path, 1, True, [])
    finally:
        del gym.registry["Unseen-v0"]


def refusing(env, keys, take):
    if unknown := keys.keys() - take.keys():
        raise TypeError(f"Unseen.__init__() got an unexpected keyword argument {unknown.pop()!r}")
    env.render_mode = None
    return env


def test_an_environment_that_fails_with_pictures_only_says_why(tmp_path, monkeypatch):
    trained(tmp_path, *GRID, "bonus=none", "env.max_steps=20")
    make = making.make

    def making_no_pictures(env, frame_stack, run_seed, render_mode=None):
        if render_mode:
            raise UsageError("env.id: Robot-v0 cannot be created: no OpenGL")
        return make(env, frame_stack, run_seed)

    monkeypatch.setattr(making, "make", making_no_pictures)
    reason = "cannot be filmed: with render_mode=rgb_array, env.id: Robot-v0 cannot be created: no OpenGL: leave"
    with pytest.raises(UsageError, match=reason):
        play(tmp_path, 1, True, [])


def test_a_long_episode_shows_its_progress(tmp_path, monkeypatch, capsys):
    trained(tmp_path, *GRID, "bonus=none", "env.max_steps=20")
    monkeypatch.setattr("cfn.training.play.PROGRESS_SECONDS", -1.0)
    play(tmp_path, 2, True, [])
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "episode 1 of 2: step 0 of at most 20"
    assert "episode 2 of 2: step 3 of at most 20" in said


@pytest.mark.parametrize("bonus", ["first_visit", "noveld bonus@bonus.novelty=count", "e3b"])
def test_a_run_of_several_environments_is_played(tmp_path, capsys, bonus):
    trained(tmp_path, *GRID, *f"bonus={bonus}".split(), "num_envs=2")
    play(tmp_path, 1, False, [])
    assert "mean return" in capsys.readouterr().out
