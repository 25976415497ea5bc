"""The YAML files: each one composes with each, and holds the paper's values."""

import pytest
import yaml
from composing import composed

from cfn import config as cfn_config
from cfn.config import CONF
from cfn.errors import UsageError

GROUPS = ("env", "agent", "bonus")  # what each other's values depend on
OPTIONS = {
    group: sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    for group in (*GROUPS, "tracker", "experiment", "preset")
}
OPTIONS["agent"].remove("auto")  # stands for others: tests/launch/test_composed.py


def suite_of(env):
    """The suite that an environment chooses: all that the values of agents and bonuses depend on."""
    defaults = yaml.safe_load((CONF / "env" / f"{env}.yaml").read_text()).get("defaults", [])
    chosen = [
        option for entry in defaults if isinstance(entry, dict) for key, option in entry.items() if "suite" in key
    ]
    parents = [suite_of(entry) for entry in defaults if isinstance(entry, str) and entry != "_self_"]
    return [*chosen, *parents, "generic"][0]


FIRST_OF_SUITE = {suite_of(env): env for env in reversed(OPTIONS["env"])}
"""One environment of each suite."""


def with_each(names, *others):
    """Each name with each option of the first group; the options of the other groups take turns."""
    return [
        (name, option, *(group[(row + column) % len(group)] for group in others[1:]))
        for row, name in enumerate(names)
        for column, option in enumerate(others[0])
    ]


# Not all triples: agents and bonuses take their values from the environment's suite, not from each other.
PAIRS = {
    *with_each(FIRST_OF_SUITE.values(), OPTIONS["bonus"], OPTIONS["agent"]),
    *with_each(OPTIONS["env"], ["cfn"], OPTIONS["agent"]),
}


@pytest.mark.parametrize("chosen", sorted(PAIRS), ids="-".join)
def test_each_composes_with_each(chosen):
    env, bonus, agent = chosen
    missing = {"gym": ["env.id=CartPole-v1"], "atari": ["env.game=Breakout"]}.get(env, [])
    config, _ = composed(f"env={env}", f"agent={agent}", f"bonus={bonus}", *missing)
    names = (config.env.name, config.bonus.name, config.agent.name)
    assert names == chosen, "what the command names goes before what an environment chooses"


EXPERIMENTS = [name for name in OPTIONS["experiment"] if name != "none"]


def has_preset(experiment, preset):
    return (CONF / "preset" / preset / f"{experiment}.yaml").is_file()


def check_experiment(experiment, bonus, agent, preset):
    preset = preset if has_preset(experiment, preset) else "paper"
    config, _ = composed(f"experiment={experiment}", f"preset={preset}", f"agent={agent}", f"bonus={bonus}")
    assert (config.bonus.name, config.agent.name) == (bonus, agent)


@pytest.mark.parametrize(
    "chosen", with_each(EXPERIMENTS, ["cfn", "none"], OPTIONS["agent"], OPTIONS["preset"]), ids="-".join
)
def test_each_experiment_composes(chosen):
    check_experiment(*chosen)


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen", with_each(EXPERIMENTS, OPTIONS["bonus"], OPTIONS["agent"], OPTIONS["preset"]), ids="-".join
)
def test_each_experiment_composes_with_each(chosen):
    check_experiment(*chosen)


@pytest.mark.parametrize("tracker", OPTIONS["tracker"])
def test_any_tracker_will_do(tracker):
    assert composed(f"tracker={tracker}")[0].tracker.name == tracker


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("experiment", "preset"), [(e, p) for e in EXPERIMENTS for p in OPTIONS["preset"] if has_preset(e, p)]
)
def test_what_an_experiment_sweeps_composes(experiment, preset):
    """The first run and the last, as the sweeper would have them."""
    _, hydra = composed(f"experiment={experiment}", f"preset={preset}")
    for end in (0, -1):
        values = {k: str(v).split(",")[end] for k, v in hydra.sweeper.params.items() if k != "seed"}
        config, _ = composed(
            f"experiment={experiment}", f"preset={preset}", *(f"{k}={value}" for k, value in values.items())
        )
        assert all(getattr(config, k).name == v for k, v in values.items() if k in GROUPS)


def test_every_experiment_has_a_paper_and_a_mini_preset_and_some_a_small_one():
    found = {size: {p.stem for p in (CONF / "preset" / size).glob("*.yaml")} for size in OPTIONS["preset"]}
    assert found["paper"] == found["mini"] == set(EXPERIMENTS)
    assert {"gridworld_counts", "gridworld_curves"} < found["small"] < set(EXPERIMENTS)


@pytest.mark.parametrize("experiment", [name for name in EXPERIMENTS if has_preset(name, "small")])
def test_the_small_preset_keeps_the_papers_task_and_makes_images_networks_and_batches_smaller(experiment):
    small, paper = (composed(f"experiment={experiment}", f"preset={size}")[0] for size in ("small", "paper"))
    assert small.steps == paper.steps
    assert small.env.keys["image_size"] == paper.env.keys["image_size"] / 2
    assert {k: v for k, v in small.env.keys.items() if k != "image_size"} == {
        k: v for k, v in paper.env.keys.items() if k != "image_size"
    }
    for part, sizes in (("agent", {"channels", "hidden"}), ("bonus", {"channels", "batch_size"})):
        ours, theirs = (getattr(config, part).keys for config in (small, paper))
        assert {key for key in theirs if ours[key] != theirs[key]} <= sizes
    small.env.build(render_mode=None).close()


def test_an_experiment_without_a_small_preset_names_those_that_it_has():
    with pytest.raises(UsageError, match=r"^preset=small: experiment=fetch has no such size: use preset=mini or"):
        composed("experiment=fetch", "preset=small")


@pytest.mark.parametrize("path", sorted(CONF.rglob("*.yaml")), ids=lambda p: str(p.relative_to(CONF)))
def test_self_stands_last(path):
    defaults = (yaml.safe_load(path.read_text()) or {}).get("defaults", ["_self_"])
    assert defaults[-1] == "_self_" or path.parent.name == "preset", "a file's own values go before what it builds on"


def test_a_bare_command_is_small():
    config, hydra = composed()
    assert (config.env.name, config.agent.name, config.bonus.name, config.tracker.name) == (
        "gridworld_small", "rainbow", "cfn", "wandb",
    )  # fmt: skip
    assert config.env.keys["size"] == 21
    assert hydra.job.name == "train"


GRIDWORLD_TABLES = {  # the columns "Gridworld" of the paper's Appendix D, and what the published runs add
    "rainbow": {
        "gamma": 0.99, "lr": 1.25e-4, "n_step": 3, "min_size": 1000, "atoms": 51, "vmin": -10, "vmax": 10,
        "batch_size": 32, "capacity": 1_000_000, "update_period": 1, "target_period": 500, "epsilon": 0.001,
        "epsilon_decay": 1000, "eval_epsilon": 0.001, "double": False, "dueling": False, "noisy": False,
        "channels": [32, 64, 64], "hidden": [512], "timeout_is_terminal": True,
    },
    "cfn": {
        "scale": 0.01, "normalize": True, "lr": 1e-4, "capacity": 1_000_000, "batch_size": 1024, "update_period": 1,
        "d": 20, "alpha": 0.5, "min_size": 1000, "prioritize": True, "prior": True, "flips": "rademacher",
    },
    "rnd": {"scale": 1e-4, "lr": 1e-4, "inputs": "published"},
    "pixelcnn": {"scale": 0.5, "gain_scale": 0.5, "lr": 1e-4, "side": 42, "gate": "sum"},
}  # fmt: skip
ATARI_TABLES = {  # the columns "Atari", likewise
    "rainbow": GRIDWORLD_TABLES["rainbow"] | {
        "min_size": 20_000, "update_period": 4, "target_period": 8000, "epsilon": 0.01, "epsilon_decay": 250_000,
    },
    "cfn": GRIDWORLD_TABLES["cfn"] | {
        "normalize": False, "lr": 1e-5, "capacity": 20_000_000, "batch_size": 512, "update_period": 4,
    },
    "rnd": {"scale": 5e-5, "lr": 1e-4, "inputs": "published"},
    "pixelcnn": {"scale": 0.1, "gain_scale": 1.0, "lr": 1e-4, "side": 42, "gate": "sum"},
}  # fmt: skip


def assert_table(config, name, table):
    keys = (config.agent if name == "rainbow" else config.bonus).keys
    assert {key: keys[key] for key in table} == table


def test_atari_has_values_of_its_own():
    for name, table in ATARI_TABLES.items():
        config, _ = composed("env=montezuma", *chosen(name))
        assert_table(config, name, table)
        assert (config.frame_stack, config.extrinsic_clip, config.steps) == (4, 1, 50_000_000)
        assert config.reward_clip == (None if name == "rnd" else 1), "published runs clip the sum, but not with RND"
        assert (config.eval.every, config.eval.steps) == (250_000, 125_000)
        assert config.env.keys == {"game": "MontezumaRevenge", "sticky": 0.25, "max_steps": 27_000}


def chosen(name):
    return ["agent=rainbow"] if name == "rainbow" else [f"bonus={name}"]


@pytest.mark.parametrize("env", ["gridworld", "taxi5", "taxi10"])
@pytest.mark.parametrize("name", GRIDWORLD_TABLES)
def test_an_environment_of_the_paper_brings_the_papers_values(env, name):
    """Visual Taxi has no column of its own: only bonuses are trained there, with Gridworld's values."""
    config, _ = composed(f"env={env}", *chosen(name))
    assert_table(config, name, GRIDWORLD_TABLES[name])
    assert (config.frame_stack, config.extrinsic_clip) == (1, None)
    assert config.reward_clip == (None if name == "rnd" else 1), "published runs clip the sum, but not with RND"
    assert config.eval.steps == 1000


@pytest.mark.parametrize("env", ["taxi5", "taxi10"])
def test_taxi_is_watched_for_200_000_steps(env):
    config, _ = composed(f"env={env}")
    assert config.steps == 200_000


def test_naming_the_papers_gridworld_gives_its_values():
    config, _ = composed("env=gridworld")
    assert config.env.keys == {"size": 42, "image_size": 84, "action_noise": 0, "max_steps": 150}
    assert (config.steps, config.eval.every, config.reward_clip) == (250_000, 1_000, 1)


@pytest.mark.parametrize(
    ("steps", "every", "envs"),
    [
        (1_000, 1_000, ("gridworld", "fetch_reach", "fetch_push", "fetch_slide", "fetch_pick_and_place")),
        (10_000, 10_000, ("pen", "door", "hammer", "relocate", "antmaze")),
        (125_000, 250_000, ("montezuma",)),
    ],
)
def test_every_suite_of_the_paper_evaluates_as_long_as_published(steps, every, envs):
    for env in envs:
        config, _ = composed(f"env={env}")
        assert (config.eval.steps, config.eval.every) == (steps, every), env


def test_a_command_goes_before_a_suite():
    config, _ = composed("env=gridworld", "steps=7", "bonus=count", "bonus.scale=3", "eval.every=2")
    assert (config.steps, config.eval.every, config.bonus.keys["scale"]) == (7, 2, 3)


def test_any_gymnasium_environment_has_no_clip_and_no_oracle():
    config, _ = composed("env=gym", "env.id=CartPole-v1")
    assert (config.extrinsic_clip, config.reward_clip) == (None, None)
    assert config.bonus.name == "none"


def test_outside_the_paper_methods_are_as_their_own_papers_describe_them():
    rainbow, _ = composed("env=gym", "env.id=CartPole-v1", "bonus=rnd")
    assert rainbow.agent.keys["timeout_is_terminal"] is False
    assert rainbow.bonus.keys["inputs"] == "standard"
    sac, _ = composed("env=gym", "env.id=Pendulum-v1")
    standard = {"target": "standard", "init": "uniform", "clamp_log_std": True, "keep_cut_windows": True, "n_step": 1}
    assert {key: sac.agent.keys[key] for key in standard} == standard
    assert sac.eval.steps == 0
    pixelcnn, _ = composed("env=gym", "env.id=CartPole-v1", "bonus=pixelcnn")
    assert pixelcnn.bonus.keys["gate"] == "product"


@pytest.mark.parametrize("bonus", ["cfn", "rnd", "pixelcnn"])
def test_the_small_gridworld_keeps_the_bonuses_and_clips_of_the_papers_gridworld(bonus):
    """It stands in for it in the mini presets. Only `timeout_is_terminal` is of another kind there."""
    small, full = (composed(f"env={env}", f"bonus={bonus}")[0] for env in ("gridworld_small", "gridworld"))
    assert (small.extrinsic_clip, small.reward_clip) == (full.extrinsic_clip, full.reward_clip)
    assert all(small.bonus.keys.get(key) == full.bonus.keys.get(key) for key in ("inputs", "gate"))
    assert (small.agent.keys["timeout_is_terminal"], full.agent.keys["timeout_is_terminal"]) == (False, True)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["env=fetch_push", "agent.target=nosuch"], r"^agent\.target=nosuch: should be 'dopamine' or 'standard'$"),
        (["env=fetch_push", "agent.init=nosuch"], r"^agent\.init=nosuch: should be 'glorot' or 'uniform'$"),
        (["env=fetch_push", "agent.clamp_log_std=2"], r"^agent\.clamp_log_std=2: should be true or false$"),
        (["agent.timeout_is_terminal=maybe"], r"^agent\.timeout_is_terminal=maybe: should be true or false$"),
        (["bonus=rnd", "bonus.inputs=nosuch"], r"^bonus\.inputs=nosuch: should be 'published' or 'standard'$"),
        (["bonus=pixelcnn", "bonus.gate=nosuch"], r"^bonus\.gate=nosuch: should be 'sum' or 'product'$"),
        (["extrinsic_clip=-1"], r"^extrinsic_clip=-1: should be greater than 0, or null$"),
        (["agent.target=dopamine"], r"^agent\.target is not a key .*: the keys of agent=rainbow are atoms, "),
        (["env=fetch_push", "agent.timeout_is_terminal=true"], r"is not a key: the keys of agent=sac are batch_size, "),
        (["bonus.gate=sum"], r"^bonus\.gate is not a key: the keys of bonus=cfn are alpha, "),
        (["bonus.inputs=published"], r"^bonus\.inputs is not a key: the keys of bonus=cfn are alpha, "),
        (["env.goal=run"], r"^env\.goal is not a key: the keys of env=gridworld_small are action_noise, "),
    ],
)
def test_an_unknown_choice_is_told_the_right_ones_and_a_choice_of_another_method_is_no_key(overrides, message):
    with pytest.raises(UsageError, match=message):
        composed(*overrides)


@pytest.mark.parametrize("env", ["fetch_push", "pen", "antmaze"])
def test_without_a_bonus_sac_has_the_n_step_returns_of_the_text(env):
    config, _ = composed(f"env={env}", "bonus=none")
    assert (config.agent.keys["n_step"], config.reward_clip) == (3, 1)


@pytest.mark.parametrize("experiment", ["gridworld_counts", "gridworld_ablation", "zero_flips"])
def test_figures_2_3_10_and_11_are_of_rainbow_as_published_and_a_random_policy_on_request(experiment):
    assert composed(f"experiment={experiment}")[0].agent.name == "rainbow"
    assert composed(f"experiment={experiment}", "agent=random")[0].agent.name == "random"
    assert composed("experiment=taxi_counts")[0].agent.name == "random"


def test_the_ablation_runs_250_000_steps():
    assert composed("experiment=gridworld_ablation")[0].steps == 250_000


@pytest.mark.parametrize(("preset", "seeds", "size"), [("paper", "range(10)", 42), ("mini", "range(3)", 21)])
def test_an_experiment_is_a_sweep(preset, seeds, size):
    config, hydra = composed("experiment=random_walk", f"preset={preset}")
    assert hydra.mode.name == "MULTIRUN"
    assert hydra.sweeper.params.seed == seeds
    assert config.env.keys["size"] == size


@pytest.mark.parametrize(("bonus", "noisy"), [("cfn", False), ("rnd", False), ("none", True)])
def test_the_baseline_of_the_curves_is_noisy_rainbow(bonus, noisy):
    config, hydra = composed("experiment=gridworld_curves", f"bonus={bonus}")
    assert (config.agent.name, config.agent.keys["noisy"]) == ("rainbow", noisy)
    assert hydra.sweeper.params.bonus == "cfn,rnd,pixelcnn,none"


def test_noise_lengthens_episodes():
    config, hydra = composed("experiment=gridworld_noise", "env.action_noise=0.5")
    assert hydra.sweeper.params["env.action_noise"] == "0,0.1,0.2,0.3,0.4,0.5"
    assert config.env.build(render_mode=None).max_steps == 300


SAC = {  # what is the same in the columns "Fetch", "Adroit" and "Ant", and what the published runs add
    "gamma": 0.99, "n_step": 3, "min_size": 10_000, "batch_size": 256, "capacity": 1_000_000, "update_period": 1,
    "tau": 0.005, "hidden": [256, 256], "target": "dopamine", "init": "glorot", "clamp_log_std": False,
    "keep_cut_windows": False,
}  # fmt: skip
CFN = GRIDWORLD_TABLES["cfn"] | {"normalize": False, "hidden": [400, 300]}
RND = {"scale": 5e-5, "lr": 1e-4, "inputs": "published"}
FETCH_TABLES = {
    "sac": SAC | {"lr": 3e-4, "reward_scale": 1},
    "cfn": CFN | {"scale": 0.001, "lr": 1e-4},
    "rnd": RND,
}
ADROIT_TABLES = {
    "sac": SAC | {"lr": 1e-4, "reward_scale": 30},
    "cfn": CFN | {"scale": 0.001, "lr": 1e-4},
    "rnd": RND,
}
ANT_TABLES = {
    "sac": SAC | {"lr": 3e-4, "reward_scale": 0.1},
    "cfn": CFN | {"scale": 0.01, "lr": 1e-3},
    "rnd": RND,
}


def continuous(env, name, table):
    """The environment's config, once the agent is seen to be SAC and the values the table's."""
    config, _ = composed(f"env={env}", *([] if name == "sac" else [f"bonus={name}"]))
    assert config.agent.name == "sac"
    keys = (config.agent if name == "sac" else config.bonus).keys
    assert {key: keys[key] for key in table} == table
    assert (config.extrinsic_clip, config.reward_clip) == (None, 1)
    return config


@pytest.mark.parametrize("task", ["reach", "push", "slide", "pick_and_place"])
@pytest.mark.parametrize("name", FETCH_TABLES)
def test_a_fetch_task_brings_sac_and_the_papers_values(task, name):
    config = continuous(f"fetch_{task}", name, FETCH_TABLES[name])
    assert (config.steps, config.eval.every, config.eval.steps) == (2_000_000, 1_000, 1_000)
    assert config.env.keys == {"task": task, "mode": "default", "max_steps": 50, "bin": 0.025}


@pytest.mark.parametrize(
    ("task", "mode", "steps", "width"),
    [
        ("pen", "medium", 1_500_000, 0.01),
        ("door", "medium", 4_000_000, 0.01),
        ("relocate", "hard", 5_000_000, 0.025),
        ("hammer", "hard", 10_000_000, 0.025),
    ],
)
@pytest.mark.parametrize("name", ADROIT_TABLES)
def test_an_adroit_task_brings_sac_and_the_papers_values(task, mode, steps, width, name):
    config = continuous(task, name, ADROIT_TABLES[name])
    assert (config.steps, config.eval.every, config.eval.steps) == (steps, 10_000, 10_000)
    assert config.env.keys == {"task": task, "mode": mode, "max_steps": 200, "bin": width}


@pytest.mark.parametrize("name", ANT_TABLES)
def test_the_ant_brings_sac_and_the_papers_values(name):
    config = continuous("antmaze", name, ANT_TABLES[name])
    assert (config.steps, config.eval.every, config.eval.steps) == (4_000_000, 10_000, 10_000)
    assert config.env.keys == {"max_steps": 1000, "bin": 0.2, "goal": "run"}


def test_figures_5_and_6_are_fourteen_tasks_by_three_methods_by_nine_seeds():
    sweeps = [composed(f"experiment={name}")[1].sweeper.params for name in ("d4rl", "fetch")]
    assert [params.seed for params in sweeps] == ["range(9)"] * 2
    assert [params.bonus for params in sweeps] == ["cfn,rnd,none"] * 2
    assert len(sweeps[0].env.split(",")) == 5
    assert len(sweeps[1].env.split(",")) * len(sweeps[1]["env.mode"].split(",")) == 9


def test_the_configs_are_where_people_look():
    assert {"config.yaml", "base.yaml"} <= {path.name for path in cfn_config.CONF.iterdir()}
