import pytest
from folders import make_run

from cfn.analysis.groups import group, swept
from cfn.analysis.runs import load, read


def groups(tmp_path):
    return group(load([tmp_path])[0])


def test_seeds_are_grouped_and_what_differs_is_the_legend(tmp_path):
    for scale in (0.01, 0.1):
        for seed in (1, 0):
            make_run(tmp_path, seed=seed, config={"bonus.scale": scale, "bonus.lr": 1e-4, "outputs": f"{scale}{seed}"})
    make_run(tmp_path, "rnd", config={"bonus.scale": 5})
    found, problems = groups(tmp_path)
    assert [one.label for one in found] == ["CFN, bonus.scale=0.01", "CFN, bonus.scale=0.1", "RND"]
    assert [[run.seed for run in one.runs] for one in found] == [[0, 1], [0, 1], [0]]
    assert problems == []
    assert swept(found) == ["bonus.scale"]
    assert found[0].without("bonus.scale") == "CFN"


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
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN, bf16=False", "CFN, bf16=True", "CFN, bf16=None"]


def test_what_a_command_asked_for_is_not_taken_for_an_older_releases_lack(tmp_path):
    make_run(tmp_path, env="FrozenLake-v1", config={"env.kwargs": {}})
    make_run(tmp_path, env="FrozenLake-v1", config={"env.kwargs.slip": False}, overrides=["+env.kwargs.slip=false"])
    found, problems = groups(tmp_path)
    assert [one.label for one in found] == ["CFN, env.kwargs.slip=False", "CFN, env.kwargs.slip=None"]
    assert problems == [], "no run is left out"
    make_run(tmp_path / "other", config={})
    make_run(tmp_path / "other", config={"bf16": True}, overrides=["bf16=true"])
    assert len(groups(tmp_path / "other")[0]) == 2


def test_what_tells_methods_apart_is_told_of_all(tmp_path):
    make_run(tmp_path, "cfn", config={"env.size": 14, "env.image_size": 28}, overrides=["env.size=14"])
    make_run(tmp_path, "rnd", config={"env.size": 42, "env.image_size": 84, "bonus.scale": 3})
    assert [one.label for one in groups(tmp_path)[0]] == ["CFN, env.size=14", "RND, env.size=42"]


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
    assert swept(found) == ["bonus.a"], "bars stand over numbers"


def test_of_one_seed_twice_the_run_that_came_furthest_counts(tmp_path):
    make_run(tmp_path, returns=(0,), mse=(1,))
    longer = make_run(tmp_path)
    found, problems = groups(tmp_path)
    assert [run.folder for run in found[0].runs] == [longer]
    assert problems == [
        "1 run has the setting and seed of another and is left out: of each seed, the run that came furthest counts"
    ]


def test_modes_and_games_are_tasks_of_their_own(tmp_path):
    for mode in ("easy", "hard"):
        make_run(tmp_path, env="fetch_push", agent="sac", config={"env.mode": mode})
    make_run(tmp_path, env="atari", config={"env.game": "pong"})
    assert [one.task for one in groups(tmp_path)[0]] == ["atari pong", "fetch_push easy", "fetch_push hard"]
    make_run(tmp_path / "odd", env="fetch_push", agent="sac", config={"env.mode": "$\\bad{\x1b[1m\n"})
    assert groups(tmp_path / "odd")[0][0].task == "fetch_push ?\\bad{?[1m?"


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
    assert (read(folder).env, read(folder).agent, read(folder).bonus) == ("gridworld", "rainbow", "rnd")
    record = "hydra: {runtime: {choices: {env: taxi5, agent: random, bonus: cfn}}}"
    (folder / ".hydra" / "hydra.yaml").write_text(record)
    assert (read(folder).env, read(folder).agent, read(folder).bonus) == ("taxi5", "random", "cfn")
