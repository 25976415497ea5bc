"""`cfn bench`: what a run costs, and what to change first."""

import json

import pytest
from composing import composed

from cfn.cli.bench import advice
from cfn.envs.gridworld import Gridworld
from cfn.training.benchmark import PARTS, Benchmark

SMALL = ("env.size=5", "env.image_size=10", "agent.min_size=50", "agent.batch_size=4", "bonus.min_size=50", "threads=1")
SMALL += ("bonus.batch_size=4", "device=cpu")


@pytest.mark.thorough
def test_every_part_of_a_run_is_measured_while_it_learns(call, tmp_path):
    done = call("bench", *SMALL, "--seconds", "0.5", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["command"] == f"cfn bench {' '.join(SMALL)}"
    assert list(found["milliseconds"]) == list(PARTS)
    assert all(ms > 0 for ms in found["milliseconds"].values())
    assert sum(found["milliseconds"].values()) * found["steps_per_second"] == pytest.approx(1000, rel=0.3)
    seconds = 10_000 / found["steps_per_second"] + found["evaluations"] * found["evaluation_seconds"]
    assert found["hours"] * 3600 == pytest.approx(seconds)
    assert found["evaluations"] == 20
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


@pytest.mark.thorough
def test_a_table_for_people(call):
    done = call("bench", "agent=random", "bonus=none", "--seconds", "0.1")
    assert done.returncode == 0, done.stderr
    assert "part of a step" in done.stdout
    assert "estimated time of 10,000 steps: 0 minutes" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--seconds", "0"), "argument --seconds: 0 is not a number of seconds above 0"),
        (("bonus=nosuch",), "bonus=nosuch"),
        (("bonus.nosuch=1",), "bonus.nosuch"),
        (("--config-dir", "nowhere"), "--config-dir nowhere: there is no such folder"),
    ],
)
def test_bad_input(call, arguments, sentence):
    done = call("bench", *arguments)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_environment_that_fails_ends_the_measurement(call, monkeypatch):
    steps = []

    def failing(self, action):
        steps.append(action)
        return 1 / 0 if len(steps) > 700 else plain(self, action)

    plain = Gridworld.step
    monkeypatch.setattr(Gridworld, "step", failing)
    done = call("bench", "agent=random", "bonus=none", "--seconds", "60")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert "This is a bug" not in done.stderr


def cost(device="cpu", threads=1, evaluation=0.0, **milliseconds):
    parts = dict.fromkeys(PARTS, 0.1) | {part.replace("_", " "): ms for part, ms in milliseconds.items()}
    machine = {"device": device, "threads": threads, "cores": 2}
    return Benchmark(parts, 100.0, evaluation, 20, 0, 0, 1.0, 100, machine)


@pytest.mark.parametrize(
    ("overrides", "found", "first_words"),
    [
        ((), cost(agent_update=5.0), ["compile=true", "threads=2"]),
        ((), cost(bonus_update=5.0, threads=2), ["compile=true"]),
        (("compile=true",), cost("a GPU", agent_update=5.0), ["bf16=true"]),
        ((), cost(acting=5.0), ["num_envs=8"]),
        (("num_envs=4",), cost(acting=5.0), []),
        ((), cost(environment=5.0, evaluation=100.0), ["a larger eval.every"]),
        (("num_envs=8",), cost(environment=5.0), ["env_workers=2"]),
        (("num_envs=8", "env_workers=2"), cost(environment=5.0), []),
        (("num_envs=4",), cost(environment=0.2, acting=0.01), []),
    ],
)
def test_what_to_change_first(overrides, found, first_words):
    config, _ = composed(*overrides)
    assert [sentence.partition(":")[0] for sentence in advice(config, found)] == first_words
