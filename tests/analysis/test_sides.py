import pytest
from folders import make_run

from cfn.analysis.sides import Filter, Side, match, same_setting, select
from cfn.errors import UsageError
from cfn.runs.record import load_runs


def side(name, *records):
    return Side(name, f"source of {name}", f"--{name.lower()}", records)


def runs(root):
    return load_runs([root])[0]


@pytest.mark.parametrize(
    ("key", "value", "matches"),
    [
        ("bonus", "cfn", True),
        ("bonus", "rnd", False),
        ("bonus", "rnd,cfn", True),
        ("env", "gridworld", True),
        ("seed", "3", True),
        ("seed", "1,2", False),
        ("bonus.lr", "0.001", True),
        ("bonus.lr", "1e-3", True),  # YAML reads it as text
        ("bonus.lr", "1e-4", False),
        ("bonus.prior", "true", True),
        ("bonus.prior", "True", True),
        ("bonus.prior", "1", False),  # true is not a number
        ("bonus.on", "1", True),
        ("bonus.on", "true", False),
        ("bonus.hidden", "[4, 8]", True),
        ("bonus.hidden", "[4,8]", True),
        ("bonus.hidden", "4", False),
        ("bonus.name", "a,b", True),
        ("bonus.name", "[", False),
        ("bonus.absent", "null", True),
        ("bonus.absent", "None", True),  # as in legends
        ("bonus.absent", "0", False),
    ],
)
def test_a_value_is_matched_as_a_command_line_means_it(tmp_path, key, value, matches):
    keys = {"lr": 0.001, "prior": True, "on": 1, "hidden": [4, 8], "name": "a,b"}
    make_run(tmp_path, seed=3, config={f"bonus.{key}": value for key, value in keys.items()})
    (record,) = runs(tmp_path)
    assert Filter("--a", key, value).matches(record) is matches


def test_what_matches_nothing_is_explained(tmp_path):
    for bonus, scale in (("cfn", 0.1), ("cfn", 0.2), ("rnd", 0.3)):
        make_run(tmp_path, bonus, config={"bonus.scale": scale})
    records = runs(tmp_path)
    assert len(select(records, [Filter("--a", "bonus", "cfn"), Filter("--a", "bonus.scale", "0.1,0.2")])) == 2
    sentences = {
        (("bonus", "cnf"),): "--a bonus=cnf matches none of the 3 runs: bonus is cfn, rnd",
        (("bonus", "rnd"), ("bonus.scale", "1")): "--a bonus.scale=1 matches none of the 1 run with bonus=rnd: "
        "bonus.scale is 0.3",
        (("bonus.scal", "1"),): "--a bonus.scal=1 matches none of the 3 runs: no run has the key bonus.scal; similar "
        "keys are bonus.scale, bonus",
        (("zzz", "1"),): "--a zzz=1 matches none of the 3 runs: no run has the key zzz",
    }
    for pairs, sentence in sentences.items():
        with pytest.raises(UsageError) as error:
            select(records, [Filter("--a", *pair) for pair in pairs])
        assert str(error.value) == sentence


def test_tasks_of_both_sides_are_matched_and_the_others_named(tmp_path):
    for env in ("gridworld", "taxi5"):
        make_run(tmp_path / "a", env=env, seed=0)
        make_run(tmp_path / "a", env=env, seed=1)
    for env in ("taxi5", "taxi10"):
        make_run(tmp_path / "b", "rnd", env=env)
    matches, problems = match(side("A", *runs(tmp_path / "a")), side("B", *runs(tmp_path / "b")), pool=False)
    assert [(one.task, len(one.a[0].runs), len(one.b[0].runs), one.labels) for one in matches] == [
        ("taxi5", 2, 1, ("CFN", "RND"))
    ]
    assert problems == [
        "left out: tasks that only A has: gridworld",
        "left out: tasks that only B has: taxi10",
    ]
    with pytest.raises(UsageError, match="A and B have no task in common: A has gridworld; B has taxi10"):
        match(side("A", *runs(tmp_path / "a" / "gridworld")), side("B", *runs(tmp_path / "b" / "taxi10")), pool=False)


def test_a_label_has_the_key_in_which_the_sides_differ(tmp_path):
    for scale in (1, 2):
        make_run(tmp_path / f"{scale}", config={"bonus.scale": scale, "bonus.lr": 3})
    ((one,), _) = match(side("A", *runs(tmp_path / "1")), side("B", *runs(tmp_path / "2")), pool=False)
    assert one.labels == ("CFN, bonus.scale=1", "CFN, bonus.scale=2")
    assert same_setting([one]) is None


def test_a_run_is_on_one_side_only(tmp_path):
    make_run(tmp_path)
    with pytest.raises(UsageError) as error:
        match(side("A", *runs(tmp_path)), side("B", *runs(tmp_path)), pool=False)
    sentence = "1 run is in both A (source of A) and B (source of B), such as "
    assert str(error.value) == f"{sentence}{tmp_path}/gridworld/rainbow-cfn/0/seed=0: choose sides without common runs"


def test_the_same_setting_on_both_sides_is_found(tmp_path):
    make_run(tmp_path / "a", env="taxi5", config={"bonus.lr": 1})
    make_run(tmp_path / "b", env="taxi5", config={"bonus.lr": 2})
    make_run(tmp_path / "a", seed=0)
    make_run(tmp_path / "b", seed=0)
    matches, _ = match(side("A", *runs(tmp_path / "a")), side("B", *runs(tmp_path / "b")), pool=False)
    assert same_setting(matches).task == "gridworld"


def test_several_settings_are_pooled_only_on_request(tmp_path):
    for scale in (1, 2):
        for seed in (0, 1):
            make_run(tmp_path / "a", seed=seed, config={"bonus.scale": scale})
    make_run(tmp_path / "b", "rnd")
    a, b = side("A", *runs(tmp_path / "a")), side("B", *runs(tmp_path / "b"))
    with pytest.raises(UsageError) as error:
        match(a, b, pool=False)
    assert str(error.value) == (
        "A (source of A) has 2 settings in gridworld, which differ in bonus.scale (1, 2): choose one with --a "
        "KEY=VALUE, or add --pool to compare all of its runs together"
    )
    ((one,), _) = match(a, b, pool=True)
    assert sum(len(setting.runs) for setting in one.a) == 4, "the seeds of both settings"
    assert one.labels == ("2 settings, pooled", "RND")


def test_a_side_has_one_bonus_on_all_tasks_but_may_have_several_agents(tmp_path):
    for env, agent in (("pen", "sac"), ("taxi5", "rainbow")):
        make_run(tmp_path / "a", "none", env=env, agent=agent)
        make_run(tmp_path / "b", "cfn", env=env, agent=agent)
    a, b = runs(tmp_path / "a"), runs(tmp_path / "b")
    matches, _ = match(side("A", *a), side("B", *b), pool=False)
    assert [one.labels for one in matches] == [("SAC", "CFN"), ("no bonus", "CFN")]
    make_run(tmp_path / "mixed", "rnd", env="pen")
    make_run(tmp_path / "mixed", "count", env="taxi5")
    with pytest.raises(UsageError, match=r"B .* has several bonuses on different tasks \(count, rnd\): choose one"):
        match(side("A", *a), side("B", *runs(tmp_path / "mixed")), pool=False)
