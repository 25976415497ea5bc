"""Stopping a run: during a step, an evaluation, and before its first checkpoint."""

import os
import signal
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from metrics import rows
from resuming import claimed, resumed

from cfn.checkpoints.store import Checkpoints
from cfn.tracking.base import Tracker
from cfn.training import evaluation
from cfn.training.signals import PrunedError, StoppedError, StopRequest


class Endless(gym.Env):
    """Walks along a line without end: an environment without a step limit."""

    observation_space = gym.spaces.Box(-1e9, 1e9, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(5))
        return np.array([float(self.place)]), {"state": (self.place,)}

    def step(self, action):
        self.place += int(action) * 2 - 1
        return np.array([float(self.place)]), 0.0, False, False, {"state": (self.place,)}


gym.register("cfn-tests/Endless-v0", Endless)
ENDLESS = ("env=gym", "env.id=cfn-tests/Endless-v0", "agent=random", "bonus=count", "eval.episodes=2")


class SignalsWhileEvaluating(Tracker):
    """Sends signals to this process in the middle of an evaluation."""

    def __init__(self, after, *signals):
        self.left, self.signals = after, signals or (signal.SIGTERM,)

    def evaluating(self, done):
        self.left -= 1
        if self.left == 0:
            for number in self.signals:
                os.kill(os.getpid(), number)


def test_episodes_without_a_limit_are_cut_and_that_is_said_once(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO")
    monkeypatch.setattr(evaluation, "DEFAULT_MAX_STEPS", 30)
    run, training = claimed(tmp_path, *ENDLESS, "steps=40", "eval.every=20", "num_envs=2")
    training.run(run)
    assert [row["eval/length"] for row in rows(tmp_path) if "eval/length" in row] == [30, 30]
    said = [record.message for record in caplog.records if "step limit" in record.message]
    assert len(said) == 1
    assert said[0].endswith(
        "has no step limit: evaluation episodes end after 30 steps (eval.max_steps). "
        "Training episodes may never end: env.max_steps limits them."
    )


@pytest.mark.parametrize(("keys", "length"), [(("eval.max_steps=7",), 7), (("env.max_steps=9",), 9)])
def test_a_limit_that_the_user_names_is_kept_in_silence(tmp_path, caplog, keys, length):
    caplog.set_level("INFO")
    run, training = claimed(tmp_path, *ENDLESS, "steps=20", "eval.every=20", *keys)
    training.run(run)
    assert rows(tmp_path)[-1]["eval/length"] == length
    assert "step limit" not in caplog.text


class LimitedByReset(Endless):
    """Sets its step limit in each reset, as BabyAI's levels do."""

    max_steps = 0

    def reset(self, *, seed=None, options=None):
        self.max_steps = 50
        return super().reset(seed=seed)


gym.register("cfn-tests/LimitedByReset-v0", LimitedByReset)


def test_a_limit_that_a_reset_sets_is_not_denied(tmp_path, caplog):
    caplog.set_level("INFO")
    run, training = claimed(
        tmp_path, *ENDLESS, "env.id=cfn-tests/LimitedByReset-v0", "steps=20", "eval.every=20", "eval.steps=0"
    )
    training.evaluate.max_steps = 9
    training.run(run)
    assert "step limit" not in caplog.text


class Fractions(Tracker):
    """Remembers how far evaluations were."""

    def __init__(self):
        self.seen = []

    def evaluating(self, done):
        self.seen.append(done)


def test_the_progress_of_parallel_episodes_is_that_of_their_steps(tmp_path):
    run, training = claimed(tmp_path, *ENDLESS, "steps=20", "eval.every=20", "eval.max_steps=4")
    fractions = Fractions()
    training.run(run, lambda run, mirror: fractions)
    assert fractions.seen == [0, 0.25, 0.5, 0.75]


LONG = (*ENDLESS, "steps=50", "eval.every=20", "eval.max_steps=40", "checkpoint.every=1000")


@pytest.fixture
def long_evaluations(monkeypatch):
    monkeypatch.setattr(evaluation, "LONG_EVALUATION", 50)


@pytest.fixture
def slow_evaluations(monkeypatch):
    """Every evaluation is expected to take too many seconds, as in environments that are slow to step."""
    monkeypatch.setattr(evaluation, "LONG_SECONDS", 0.0)


@pytest.mark.parametrize("after", [45, 90])
def test_an_evaluation_of_a_slow_environment_is_interrupted_and_repeated_on_resume(
    tmp_path, monkeypatch, slow_evaluations, after
):
    whole, training = claimed(tmp_path / "whole", *LONG)
    training.run(whole)
    run, training = claimed(tmp_path / "run", *LONG)
    with pytest.raises(StoppedError):
        training.run(run, lambda run, mirror: SignalsWhileEvaluating(after))
    assert Checkpoints(run.files.checkpoints).latest().step == (39 if after == 45 else 49)
    assert resumed(run, monkeypatch) == rows(whole.folder)


def test_the_evaluation_after_a_resume_is_interrupted_however_short(tmp_path, monkeypatch, long_evaluations):
    whole, training = claimed(tmp_path / "whole", *LONG)
    training.run(whole)
    run, training = claimed(tmp_path / "run", *LONG)
    with pytest.raises(StoppedError):
        training.run(run, lambda run, mirror: SignalsWhileEvaluating(45))
    monkeypatch.setattr(evaluation, "LONG_EVALUATION", 10_000)
    with pytest.raises(StoppedError):
        resumed(run, monkeypatch, add_tracker=lambda run, mirror: SignalsWhileEvaluating(5))
    assert Checkpoints(run.files.checkpoints).latest().step == 39
    assert resumed(run, monkeypatch) == rows(whole.folder)


def test_an_evaluation_without_checkpoints_is_interrupted_too(tmp_path, long_evaluations):
    run, training = claimed(tmp_path, *LONG, "checkpoint.every=null")
    with pytest.raises(StoppedError):
        training.run(run, lambda run, mirror: SignalsWhileEvaluating(10))
    assert not any("eval/length" in row for row in rows(tmp_path))


def test_the_comparison_of_the_bonus_is_interrupted_too(tmp_path, monkeypatch, long_evaluations):
    """It takes minutes if there are many states."""
    monkeypatch.setattr(evaluation, "CHUNK", 2)
    whole, training = claimed(tmp_path / "whole", *LONG)
    training.run(whole)
    run, training = claimed(tmp_path / "run", *LONG)
    novelty, asked = training.bonus.novelty, []

    def signals_while_comparing(observations, states):
        if len(states) > 1:  # not one of the rewards, which are asked for one by one
            asked.append(states)
            os.kill(os.getpid(), signal.SIGTERM)
        return novelty(observations, states)

    monkeypatch.setattr(training.bonus, "novelty", signals_while_comparing)
    with pytest.raises(StoppedError):
        training.run(run)
    assert len(asked) == 1, "the first chunk of states"
    assert Checkpoints(run.files.checkpoints).latest().step == 19
    assert resumed(run, monkeypatch) == rows(whole.folder)


@pytest.mark.parametrize(
    ("steps", "saved", "training_seconds", "expected"),
    [
        (20, False, None, (False, False)),
        (20, False, 1.0, (False, False)),
        (21, False, 1.0, (True, True)),
        (10_000, False, 0.001, (False, False)),
        (10_001, False, None, (True, True)),
        (10_001, True, None, (False, True)),
        (20, True, None, (False, True)),
    ],
)
def test_an_evaluation_is_long_by_its_steps_or_by_their_time(tmp_path, steps, saved, training_seconds, expected):
    _, training = claimed(tmp_path, *ENDLESS, "eval.episodes=1", f"eval.max_steps={steps}")
    evaluate = training.evaluate
    assert (evaluate.prepare(saved, training_seconds), evaluate._interruptible) == expected


def test_a_timed_evaluation_tells_how_long_the_next_one_will_take(tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(evaluation, "time", SimpleNamespace(perf_counter=lambda: clock.now))

    class SlowSteps(Tracker):
        def evaluating(self, done):
            clock.now += 0.3

    run, training = claimed(tmp_path, *ENDLESS, "eval.episodes=1", "eval.max_steps=60")
    assert not training.evaluate.prepare(False, 0.001)
    training.evaluate(20, run.files, SlowSteps(run))
    assert not training.evaluate.prepare(False, 9.0), "60 steps of 0.3 seconds"
    run, training = claimed(tmp_path / "longer", *ENDLESS, "eval.episodes=1", "eval.max_steps=80")
    training.evaluate(20, run.files, SlowSteps(run))
    assert training.evaluate.prepare(False, 0.001), "80 steps of 0.3 seconds"


@pytest.mark.parametrize("after", [10, 45, 90])
def test_a_long_evaluation_is_interrupted_and_repeated_on_resume(
    tmp_path, monkeypatch, caplog, long_evaluations, after
):
    caplog.set_level("INFO")
    whole, training = claimed(tmp_path / "whole", *LONG)
    training.run(whole)
    run, training = claimed(tmp_path / "run", *LONG)
    with pytest.raises(StoppedError):
        training.run(run, lambda run, mirror: SignalsWhileEvaluating(after))
    assert "SIGTERM: stopping after this step." in caplog.text
    evaluated = 20 if after < 41 else 40 if after < 81 else 50
    assert Checkpoints(run.files.checkpoints).latest().step == evaluated - 1, "the state before that evaluation's step"
    assert run.recorded_state == "stopped"
    assert resumed(run, monkeypatch) == rows(whole.folder)


def test_a_short_evaluation_is_finished(tmp_path, caplog):
    caplog.set_level("INFO")
    run, training = claimed(tmp_path, *LONG)
    with pytest.raises(StoppedError):
        training.run(run, lambda run, mirror: SignalsWhileEvaluating(10))
    assert "SIGTERM: stopping after this evaluation." in caplog.text
    assert rows(tmp_path)[-1]["eval/length"] == 40
    assert Checkpoints(run.files.checkpoints).latest().step == 20


CTRL_C_TWICE = (signal.SIGINT, signal.SIGINT)


def test_a_second_ctrl_c_stops_at_once_and_the_run_can_be_resumed(tmp_path, monkeypatch, long_evaluations):
    run, training = claimed(tmp_path, *LONG)
    with pytest.raises(KeyboardInterrupt):
        training.run(run, lambda run, mirror: SignalsWhileEvaluating(10, *CTRL_C_TWICE))
    assert not any("eval/length" in row for row in rows(tmp_path))
    assert Checkpoints(run.files.checkpoints).latest().step == 19
    assert resumed(run, monkeypatch)[-1]["step"] == 50


def test_a_run_stopped_before_its_first_checkpoint_starts_again(tmp_path, monkeypatch):
    whole, training = claimed(tmp_path / "whole", *LONG)
    training.run(whole)
    run, training = claimed(tmp_path / "run", *LONG)
    with pytest.raises(KeyboardInterrupt):
        training.run(run, lambda run, mirror: SignalsWhileEvaluating(10, *CTRL_C_TWICE))
    assert run.recorded_state == "stopped"
    assert not run.files.checkpoints.exists()
    assert resumed(run, monkeypatch) == rows(whole.folder)


def test_signals_that_follow_the_first_do_not_abort_the_checkpoint(tmp_path, monkeypatch):
    """Slurm sends SIGTERM after its warning."""
    whole, training = claimed(tmp_path / "whole", *LONG)
    training.run(whole)
    run, training = claimed(tmp_path / "run", *LONG)
    sent = (signal.SIGUSR2, signal.SIGTERM, signal.SIGUSR1)
    with pytest.raises(StoppedError, match="SIGUSR2") as stopped:
        training.run(run, lambda run, mirror: SignalsWhileEvaluating(10, *sent))
    assert stopped.value.code == 128 + signal.SIGUSR2
    assert Checkpoints(run.files.checkpoints).latest().step == 20
    assert resumed(run, monkeypatch) == rows(whole.folder)


class PrunesAt(Tracker):
    """Ends the run after the evaluation of a step."""

    def __init__(self, step):
        self.step = step

    def evaluated(self, step, rooms):
        if step == self.step:
            raise PrunedError("Pruned by a test")


def test_a_tracker_can_prune_a_run_which_can_be_resumed(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO")
    whole, training = claimed(tmp_path / "whole", *LONG)
    training.run(whole)
    run, training = claimed(tmp_path / "run", *LONG)
    with pytest.raises(PrunedError):
        training.run(run, lambda run, mirror: PrunesAt(20))
    assert (run.recorded_state, rows(run.folder)[-1]["step"]) == ("pruned", 20)
    assert "Pruned by a test at step 20: cfn resume " in caplog.text
    assert resumed(run, monkeypatch) == rows(whole.folder)


class SignalsAtTheEnd(Tracker):
    """Sends a signal to this process after the last step."""

    def finish(self, failed=False):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_after_the_last_step_leaves_a_finished_run(tmp_path):
    run, training = claimed(tmp_path, *LONG)
    with pytest.raises(StoppedError):
        training.run(run, lambda run, mirror: SignalsAtTheEnd(run))
    assert run.recorded_state == "finished"


def test_the_first_reason_counts_and_only_a_second_ctrl_c_interrupts():
    with StopRequest() as stop:
        stop(ValueError("an environment broke"))
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert str(stop.reason) == "an environment broke"
        assert str(stop.signal) == "SIGINT"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
