import pytest
from folders import make_run

from cfn.analysis.grouping import differing_keys, group, swept_keys
from cfn.runs.record import Record, load_runs


def groups(tmp_path):
    return group(load_runs([tmp_path])[0])


def test_seeds_are_grouped_and_what_differs_is_the_legend(tmp_path):
    for scale in (0.01, 0.1):
        for seed in (1, 0):
            make_run(tmp_path, seed=seed, config={"bonus.scale": scale, "bonus.lr": 1e-4, "outputs": f"{scale}{seed}"})
    make_run(tmp_path, "rnd", config={"bonus.scale": 5})
    found, problems = groups(tmp_path)
    assert [one.label for one in found] == ["CFN, bonus.scale=0.01", "CFN, bonus.scale=0.1", "RND"]
    assert [[run.seed for run in one.runs] for one in found] == [[0, 1], [0, 1], [0]]
    assert problems == []
    assert swept_keys(found) == ["bonus.scale"]
    assert found[0].label_without("bonus.scale") == "CFN"


def test_a_value_that_follows_from_the_bonus_is_shown_only_if_a_command_named_it(tmp_path):
    make_run(tmp_path / "a", config={"reward_clip": 1})
    make_run(tmp_path / "a", "rnd", config={"reward_clip": None})
    assert [one.label for one in groups(tmp_path / "a")[0]] == ["CFN", "RND"]
    make_run(tmp_path / "a", "rnd", seed=1, config={"reward_clip": 1}, overrides=["reward_clip=1"])
    labels = [one.label for one in groups(tmp_path / "a")[0]]
    assert labels == ["CFN, reward_clip=1", "RND, reward_clip=1", "RND, reward_clip=null"]


def test_settings_that_would_be_called_alike_are_told_apart(tmp_path):
    for a in (0.12345671, 0.12345672):
        for text in ("x" * 50 + "1", "x" * 50 + "2"):
            make_run(tmp_path, config={"env.a": a, "env.text": text})
    found, _ = groups(tmp_path)
    assert len({one.label for one in found}) == 4
    assert [one.keys["env.a"] for one in found if "env.a=0.12345671" in one.label] == [0.12345671] * 2


def test_a_seed_that_the_config_lacks_is_in_the_summary(tmp_path):
    for seed in (0, 1):
        (make_run(tmp_path, seed=seed) / ".hydra" / "config.yaml").write_text("steps: 5\n")
    (one,), problems = groups(tmp_path)
    assert [run.seed for run in one.runs] == [0, 1]
    assert problems == []


def test_a_suites_value_names_no_other_parts_key(tmp_path):
    for size in (1, 2):
        config = {"agent.batch_size": 8 * size, "bonus.batch_size": size, "agent.lr": size, "steps": size}
        make_run(tmp_path, config=config, overrides=[f"suite.cfn.batch_size={size}"])
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN, bonus.batch_size=1", "CFN, bonus.batch_size=2"]


def test_where_and_how_long_is_no_setting(tmp_path):
    for seed, keys in enumerate(({"steps": 5, "threads": 1}, {"device": "cpu", "eval.every": 7, "suite.cfn.lr": 3})):
        make_run(tmp_path, seed=seed, config=keys)
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN"]


def test_runs_of_an_older_release_lack_a_key_and_are_seeds_all_the_same(tmp_path):
    make_run(tmp_path, seed=0)
    make_run(tmp_path, seed=1, config={"bf16": False})
    assert [len(one.runs) for one in groups(tmp_path)[0]] == [2]
    make_run(tmp_path, seed=1, config={"bf16": True})
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN, bf16=false", "CFN, bf16=true", "CFN"]


def test_what_a_command_asked_for_is_not_taken_for_an_older_releases_lack(tmp_path):
    make_run(tmp_path, env="FrozenLake-v1", config={"env.kwargs": {}})
    make_run(tmp_path, env="FrozenLake-v1", config={"env.kwargs.slip": False}, overrides=["+env.kwargs.slip=false"])
    found, problems = groups(tmp_path)
    assert [one.label for one in found] == ["CFN, env.kwargs.slip=false", "CFN"]
    assert problems == [], "no run is left out"
    make_run(tmp_path / "other", config={})
    make_run(tmp_path / "other", config={"bf16": True}, overrides=["bf16=true"])
    assert len(groups(tmp_path / "other")[0]) == 2


def test_what_tells_methods_apart_is_told_of_all(tmp_path):
    make_run(tmp_path, "cfn", config={"env.size": 14, "env.image_size": 28}, overrides=["env.size=14"])
    make_run(tmp_path, "rnd", config={"env.size": 42, "env.image_size": 84, "bonus.scale": 3})
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN, env.size=14", "RND, env.size=42"]


def test_a_key_that_one_method_alone_has_is_lacking_in_the_others(tmp_path):
    make_run(
        tmp_path, env="FrozenLake-v1", config={"env.kwargs.map_name": "8x8"}, overrides=["+env.kwargs.map_name=8x8"]
    )
    make_run(tmp_path, "rnd", env="FrozenLake-v1", config={"env.kwargs": {}})
    make_run(tmp_path, "count", agent="random", env="FrozenLake-v1")
    assert [one.label for one in groups(tmp_path)[0]] == [
        "CFN, env.kwargs.map_name=8x8, agent=rainbow",
        "RND, agent=rainbow",
        "true counts, agent=random",
    ]


def test_a_key_that_a_later_seed_named_is_no_older_releases_lack(tmp_path):
    make_run(tmp_path, config={"env.slip": False})
    make_run(tmp_path, seed=1, config={"env.slip": False}, overrides=["env.slip=false"])
    make_run(tmp_path, seed=2)
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN, env.slip=false", "CFN"]


def test_numbers_keep_equal_labels_apart_also_from_names_with_numbers(tmp_path):
    for text in ("x" * 50 + "1", "x" * 50 + "2"):
        make_run(tmp_path, config={"bonus.text": text})
    make_run(tmp_path, "CFN (1), bonus.text=" + "x" * 37 + "...")
    make_run(tmp_path, "rnd", config={"bonus.k": 1})
    make_run(tmp_path, "rnd", config={"bonus.k": None})
    make_run(tmp_path, "rnd")
    shown = f"bonus.text={'x' * 37}..."
    assert [one.label for one in groups(tmp_path)[0]] == [
        f"CFN (1), {shown}", f"CFN (2), {shown}", f"CFN (3), {shown}",
        "RND, bonus.k=1", "RND, bonus.k=null", "RND",
    ]  # fmt: skip


def test_a_value_beyond_all_bounds_is_sorted_as_text(tmp_path):
    for value in (10**400, 2, float("nan"), 1):
        make_run(tmp_path, config={"bonus.a": value})
    assert [one.label[:20] for one in groups(tmp_path)[0]] == [
        "CFN, bonus.a=1", "CFN, bonus.a=2", "CFN, bonus.a=1000000", "CFN, bonus.a=nan",
    ]  # fmt: skip


def test_runs_of_a_task_agent_and_bonus_are_listed_with_the_keys_in_which_they_differ(tmp_path):
    for prior in (True, False):
        make_run(tmp_path, config={"bonus.prior": prior, "env.size": 8})
    make_run(tmp_path, "rnd", config={"env.size": 9})
    make_run(tmp_path, "rnd", config={"env.size": 9}, seed=1)
    records = load_runs([tmp_path])[0]
    listed = {(record.bonus, record.seed, text) for record, text in zip(records, differing_keys(records), strict=True)}
    assert listed == {("cfn", 0, "bonus.prior=true"), ("cfn", 0, "bonus.prior=false"), ("rnd", 0, ""), ("rnd", 1, "")}


def test_a_key_that_only_some_methods_sweep_stands_in_every_name(tmp_path):
    for bonus, noise in (("cfn", 0.0), ("cfn", 0.5), ("rnd", 0.5)):
        make_run(tmp_path, bonus, config={"env.action_noise": noise})
    found, _ = groups(tmp_path)
    assert [one.keys for one in found] == [{"env.action_noise": noise} for noise in (0.0, 0.5, 0.5)]


def test_all_that_commands_varied_is_told_also_if_it_varied_together(tmp_path):
    for scale, lr in ((0.1, 1e-3), (0.2, 1e-4)):
        overrides = [f"bonus.scale={scale}", f"bonus.lr={lr}"]
        make_run(tmp_path, config={"bonus.scale": scale, "bonus.lr": lr, "bonus.z": scale}, overrides=overrides)
    labels = [one.label for one in groups(tmp_path)[0]]
    assert labels == ["CFN, bonus.lr=0.0001, bonus.scale=0.2", "CFN, bonus.lr=0.001, bonus.scale=0.1"]


def test_a_key_that_follows_from_another_is_not_said_twice(tmp_path):
    for size in (14, 42):
        config = {"env.image_size": 2 * size, "env.size": size, "env.z": size}
        make_run(tmp_path, config=config, overrides=[f"env.image_size={2 * size}"])
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN, env.image_size=28", "CFN, env.image_size=84"]


def test_a_value_of_the_suites_tables_was_said(tmp_path):
    for capacity in (5000, 20_000_000):
        config = {"bonus.capacity": capacity, "bonus.a": capacity}
        make_run(tmp_path, config=config, overrides=[f"suite.cfn.capacity={capacity}"])
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN, bonus.capacity=5000", "CFN, bonus.capacity=20,000,000"]


def test_several_keys_where_one_does_not_tell(tmp_path):
    for a in (1, 2):
        for b in ("x", "y"):
            make_run(tmp_path, config={"bonus.a": a, "agent.b": b})
    found, _ = groups(tmp_path)
    assert [one.label for one in found] == [f"CFN, agent.b={b}, bonus.a={a}" for b in ("x", "y") for a in (1, 2)]
    assert swept_keys(found) == ["bonus.a"], "bars stand over numbers"


def test_of_one_seed_twice_the_run_that_came_furthest_counts(tmp_path):
    make_run(tmp_path, returns=(0,), mse=(1,))
    longer = make_run(tmp_path)
    found, problems = groups(tmp_path)
    assert [run.folder for run in found[0].runs] == [longer]
    assert problems == [
        "1 run has the same setting and seed as another and is left out; "
        "for each seed, the run with the most steps is used"
    ]


def test_modes_and_games_are_tasks_of_their_own(tmp_path):
    for mode in ("easy", "hard"):
        make_run(tmp_path, env="fetch_push", agent="sac", config={"env.mode": mode})
    make_run(tmp_path, env="atari", config={"env.game": "pong"})
    assert [one.task for one in groups(tmp_path)[0]] == ["atari pong", "fetch_push easy", "fetch_push hard"]
    make_run(tmp_path, env="atari-pong", seed=1, config={"env.game": "pong"})
    (first, *_) = groups(tmp_path)[0]
    assert (first.task, [run.seed for run in first.runs]) == ("atari pong", [0, 1]), "of an older release and of this"
    assert {run.value("env") for run in first.runs} == {"atari"}
    make_run(tmp_path / "odd", env="fetch_push", agent="sac", config={"env.mode": "$\\bad{\x1b[1m\n"})
    assert groups(tmp_path / "odd")[0][0].task == "fetch_push ?\\bad{?[1m?"


def test_maps_are_tasks_of_their_own(tmp_path):
    for name in ("Large", "UMaze"):
        make_run(tmp_path, env="pointmaze", agent="sac", config={"env.map": name, "env.mode": "fixed"})
    assert [one.task for one in groups(tmp_path)[0]] == ["pointmaze Large fixed", "pointmaze UMaze fixed"]


@pytest.mark.parametrize(
    ("bonus", "agent", "config", "expected"),
    [
        ("cfn", "rainbow", {"bonus.prior": False}, "CFN without prior"),
        ("cfn", "rainbow", {"bonus.prior": False, "bonus.prioritize": False}, "CFN without prior or priorities"),
        ("cfn", "random", {"bonus.flips": "zero"}, "zero flips"),
        ("none", "sac", {}, "SAC"),
        ("none", "rainbow", {"agent.noisy": True}, "noisy Rainbow"),
        ("rnd", "rainbow", {"agent.noisy": True}, "RND, noisy"),
        ("none", "rainbow", {"agent.noisy": False}, "no bonus"),
        ("fresh", "rainbow", {}, "fresh"),
    ],
)
def test_methods_have_the_papers_names(tmp_path, bonus, agent, config, expected):
    make_run(tmp_path, bonus, agent=agent, config=config)
    assert groups(tmp_path)[0][0].method == expected


def test_a_run_without_a_summary_is_known_by_hydras_record_or_its_path(tmp_path):
    folder = make_run(tmp_path, "rnd")
    (folder / "summary.json").unlink()
    run = Record.read(folder)
    assert (run.env, run.agent, run.bonus) == ("gridworld", "rainbow", "rnd")
    record = "hydra: {runtime: {choices: {env: taxi5, agent: random, bonus: cfn}}}"
    (folder / ".hydra" / "hydra.yaml").write_text(record)
    run = Record.read(folder)
    assert (run.env, run.agent, run.bonus) == ("taxi5", "random", "cfn")
    for option, key, value, task in (
        ("gym", "id", "CartPole-v1", "CartPole-v1"),
        ("atari", "game", "Pong", "atari Pong"),
        ("minigrid", "id", "MiniGrid-Empty-5x5-v0", "minigrid-MiniGrid-Empty-5x5-v0"),
    ):
        folder = make_run(tmp_path, env="x", config={f"env.{key}": value})
        (folder / "summary.json").unlink()
        (folder / ".hydra" / "hydra.yaml").write_text(record.replace("taxi5", option))
        assert Record.read(folder).task == task
