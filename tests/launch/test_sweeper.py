"""Sweeps, within this process."""

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

from cfn.launch.sweeper import combinations

WATCH = ("agent=random", "bonus=count")  # nothing that learns
SMALL = (*WATCH, "env.size=7", "env.image_size=14", "steps=300", "eval.every=150", "tracker=none", "pictures=false")


@pytest.mark.thorough
def test_a_sweep_makes_a_run_for_each(call, tmp_path, run_folders):
    done = call("train", "-m", *SMALL, "bonus=none,count", "seed=0,1")
    assert done.returncode == 0, done.stderr
    places = [folder.relative_to(tmp_path / "outputs").parts for folder in run_folders()]
    assert [(p[0], p[1], p[3]) for p in places] == [
        ("gridworld_small", f"random-{bonus}", f"seed={seed}") for bonus in ("count", "none") for seed in (0, 1)
    ]
    assert len({p[2] for p in places}) == 1, "one command, one moment: seeds sit side by side"


@pytest.mark.thorough
def test_a_broken_run_does_not_stop_the_others_and_the_exit_code_tells(call, run_folders):
    done = call(
        "train",
        "-m",
        *WATCH,
        "env.size=5,7",
        "seed=0,1",
        "env.image_size=14",
        "steps=100",
        "tracker=none",
        "pictures=false",
    )
    assert done.returncode == 1
    assert done.stderr.count("failed: env.size: an image of 14 pixels") == 2
    assert "Traceback" not in done.stderr
    assert [folder.name for folder in run_folders()] == ["seed=0", "seed=1"]
    assert all(",env.size=7" in folder.parent.name for folder in run_folders())


@pytest.mark.thorough
def test_a_run_that_does_not_compose_does_not_stop_the_others(call, run_folders):
    done = call(
        "train", "-m", *WATCH, "env=gridworld,nosuch", "seed=0,1", "steps=100", "tracker=none", "pictures=false"
    )
    assert done.returncode == 1
    assert done.stderr.count("env=nosuch: there is no such option") == 2
    assert "2 of 4 runs of the sweep failed" in done.stderr
    assert [folder.name for folder in run_folders()] == ["seed=0", "seed=1"]


@pytest.mark.thorough
def test_any_key_can_be_swept_and_the_folder_of_a_sweep_chosen(call, tmp_path, run_folders):
    done = call("train", *SMALL, "-m", "steps=100,200", "hydra.sweep.dir=mine")
    assert done.returncode == 0, done.stderr
    assert [folder.parent.name.partition(",")[2] for folder in run_folders()] == ["steps=100", "steps=200"]
    assert all(folder.is_relative_to(tmp_path / "mine") for folder in run_folders())


@pytest.mark.thorough
def test_an_experiment_is_one_command(call, run_folders):
    done = call("train", "experiment=random_walk", "preset=mini", "steps=200", "tracker=none", "pictures=false")
    assert done.returncode == 0, done.stderr
    assert [folder.name for folder in run_folders()] == ["seed=0", "seed=1", "seed=2"]


@pytest.mark.thorough
def test_a_scale_search_sweeps_what_the_suite_of_each_run_lists(call, run_folders):
    short = ("agent=random", "steps=60", "eval.every=30", "env.size=7", "seed=0", "tracker=none", "pictures=false")
    done = call("train", "experiment=scale_search", "preset=mini", "bonus=count,rnd", *short, "bonus.lr=1e-3")
    assert done.returncode == 1, "the oracle has no learning rate"
    scales = [str(folder.parent.name).rpartition("bonus.scale=")[2] for folder in run_folders()]
    assert scales == ["0.0005", "0.0015", "0.005", "0.015", "0.05"]


@pytest.mark.thorough
def test_a_named_value_is_not_searched_and_a_bonus_without_values_is_refused(call, run_folders):
    short = (
        "experiment=scale_search",
        "preset=mini",
        "agent=random",
        "steps=60",
        "env.size=7",
        "seed=0",
        "tracker=none",
        "pictures=false",
    )
    assert call("train", *short, "bonus=count", "bonus.scale=0.5").returncode == 0
    assert len(run_folders()) == 1
    done = call("train", *short, "bonus=none")
    assert done.returncode == 1
    assert "bonus=none has no values to search in this suite" in done.stderr


@pytest.mark.thorough
def test_without_a_bonus_the_values_of_the_agent_are_searched(call, tmp_path, run_folders):
    """In `preset=paper`, the learning rates of Rainbow; the mini preset searches scales, which are the bonus's."""
    tiny = ("env.size=4", "env.image_size=4", "suite.rainbow.channels=[2,2,2]", "suite.rainbow.hidden=[4]")
    short = ("steps=60", "eval.every=30", "eval.steps=0", "seed=0", "tracker=none", "pictures=false")
    done = call("train", "experiment=scale_search", "env=gridworld", "bonus=none", *tiny, *short)
    assert done.returncode == 0, done.stderr
    assert [folder.parent.name.rpartition("agent.lr=")[2] for folder in run_folders()] == ["0.000125", "1e-05"]
    (table,) = (tmp_path / "outputs" / "sweeps").glob("*.md")
    assert "agent.lr=0.000125" in table.read_text()


@pytest.mark.thorough
def test_an_experiment_ends_in_its_figure(call, tmp_path, run_folders):
    short = ("steps=60", "eval.every=30", "suite.rainbow.min_size=20", "suite.cfn.channels=[2,2,2]")
    done = call(
        "train", "experiment=gridworld_curves", "preset=mini", "seed=0", "tracker=none", "pictures=false", *short
    )
    assert done.returncode == 0, done.stderr
    assert [folder.parts[-4:-2] for folder in run_folders()] == [
        ("gridworld_small", f"rainbow-{bonus}") for bonus in ("cfn", "none", "pixelcnn", "rnd")
    ]
    (figure,) = (tmp_path / "outputs" / "sweeps").glob("*.png")
    assert f"The experiment's figure: outputs/sweeps/{figure.name}" in done.stdout


def overrides_of(folder):
    return yaml.safe_load((folder / ".hydra" / "overrides.yaml").read_text())


@pytest.mark.thorough
def test_a_key_of_the_swept_options_need_not_be_one_of_the_default_option(call, run_folders):
    """With env=gym the default bonus is none, which has no keys."""
    lake = ("env=gym", "env.id=FrozenLake-v1", "env.kwargs.is_slippery=false")
    done = call(
        "train",
        "-m",
        *lake,
        "bonus=count,rnd",
        "bonus.scale=0.5",
        "steps=40",
        "eval.every=40",
        "tracker=none",
        "pictures=false",
    )
    assert done.returncode == 0, done.stderr
    assert [folder.parts[-3] for folder in run_folders()] == ["rainbow-count", "rainbow-rnd"]
    for folder in run_folders():
        assert {"bonus.scale=0.5", "env.kwargs.is_slippery=false"} <= set(overrides_of(folder))
        config = yaml.safe_load((folder / ".hydra" / "config.yaml").read_text())
        assert (config["bonus"]["scale"], config["env"]["kwargs"]) == (0.5, {"is_slippery": False})


@pytest.mark.thorough
def test_a_run_that_is_invalid_with_its_own_option_is_reported_alone(call, run_folders):
    done = call("train", "-m", *SMALL[1:], "agent=random", "bonus=count,none", "bonus.scale=0.1")
    assert done.returncode == 1
    refused, total = done.stderr.splitlines()
    assert "bonus=none" in refused
    assert refused.endswith("failed: bonus.scale is not a key: bonus=none has no keys")
    assert total == "cfn: 1 of 2 runs of the sweep failed; the reasons are above"
    assert [folder.parts[-3] for folder in run_folders()] == ["random-count"]


@pytest.mark.thorough
def test_a_reason_that_concerns_all_runs_is_given_once_and_leaves_nothing(call, tmp_path):
    done = call("train", "-m", *SMALL, "bonus.scal=0.1", "seed=0,1,2")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "cfn: bonus.scal is not a key (did you mean bonus.scale?): the keys of bonus=count are"
    )
    assert len(done.stderr.splitlines()) == 1
    done = call("train", "-m", *SMALL, "bonus=cfn,rnd", "bonus.scal=0.1")
    assert done.stderr.splitlines()[-1] == "cfn: all 2 runs of the sweep failed; the reasons are above"
    assert len(done.stderr.splitlines()) == 3
    assert not (tmp_path / "outputs").exists()


@pytest.mark.thorough
def test_marks_of_hydra_are_kept_and_keys_that_no_yaml_lists_can_be_swept(call, run_folders):
    lake = ("env=gym", "env.id=FrozenLake-v1", "steps=40", "eval.every=40", "tracker=none", "pictures=false")
    done = call("train", "-m", *lake, "env.kwargs.map_name=4x4,8x8", "++env.max_steps=20", "~agent.lr", "agent=rainbow")
    assert done.returncode == 0, done.stderr
    assert [folder.parent.name.partition(",")[2] for folder in run_folders()] == [
        "env.kwargs.map_name=4x4",
        "env.kwargs.map_name=8x8",
    ]
    assert all({"++env.max_steps=20", "~agent.lr"} <= set(overrides_of(folder)) for folder in run_folders())
    assert not any("++" in text or "~" in text for folder in run_folders() for text in overrides_of(folder)[:5])


def test_a_key_without_values_cannot_be_swept(call, tmp_path):
    for arguments in (("-m",), ("-m", "--help")):
        done = call("train", "seed=range(0)", *arguments)
        assert (done.returncode, done.stderr) == (
            1,
            "cfn: seed=range(0): the list of values is empty: name at least one\n",
        )
    assert not (tmp_path / "outputs").exists()


def test_a_suite_without_values_to_search_is_refused_with_a_sentence(call, tmp_path):
    (tmp_path / "mine" / "suite").mkdir(parents=True)
    (tmp_path / "mine" / "suite" / "own.yaml").write_text("defaults: [gridworld]\nsearch: null\n")
    done = call("train", "--config-dir", "mine", "experiment=scale_search", "preset=mini", "suite=own", "env=gridworld")
    assert done.returncode == 1
    assert "cfn: bonus=cfn has no values to search in this suite: name them, as in bonus.scale=0.01,0.1" in done.stderr


def test_every_combination_is_one_run_and_spelled_as_typed():
    typed = ["a=1,2", "+b=1e-3", "~c", "d=True", "a=3,4", "++b=2e-3"]
    assert combinations(OverridesParser.create().parse_overrides(typed)) == [
        ["a=3", "++b=2e-3", "~c", "d=True"],
        ["a=4", "++b=2e-3", "~c", "d=True"],
    ]


@pytest.mark.parametrize("size", ["-1", "0", "a", "1.5"])
def test_batches_of_no_runs_are_refused(call, tmp_path, size):
    done = call("train", "-m", f"hydra.sweeper.max_batch_size={size}", "agent=random", "bonus=none", "seed=0,1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"cfn: hydra.sweeper.max_batch_size={size}: should be at least 1, or null for no limit\n"
    assert not (tmp_path / "outputs").exists()
