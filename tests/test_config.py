"""The schema: what the code declares is what a config may say."""

from typing import Annotated, Literal

import pytest
from annotated_types import Ge
from omegaconf import OmegaConf

from cfn.config import Component, check, from_values, require_values
from cfn.errors import BadValueError, UsageError

CHOICES = {
    "env": "mine",
    "agent": "random",
    "bonus": "none",
    "tracker": "none",
    "preset": "paper",
    "experiment": "none",
}


class Mine:
    """An environment that someone brings along."""

    def __init__(
        self,
        size: Annotated[int, Ge(2)] = 3,
        noise: float | None = None,
        mode: Literal["easy", "hard"] = "easy",
        names: list[str] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if size == 13:
            raise BadValueError("size", "13 is unlucky")
        self.keys = (size, noise, mode, names)


def compose(**changes):
    values = {
        "env": {"_target_": f"{Mine.__module__}.Mine"},
        "agent": {"_target_": "cfn.agents.random.RandomAgent"},
        "bonus": {"_target_": "cfn.bonuses.none.NoBonus"},
        "tracker": {"_target_": "cfn.tracking.base.Tracker"},
        "suite": {"steps": 10},
        "steps": "${suite.steps}",
        "seed": 0,
        "num_envs": 1,
        "frame_stack": 1,
        "reward_clip": 1,
        "device": "auto",
        "threads": None,
        "eval": {"every": 5, "episodes": 1},
        "outputs": "outputs",
    }
    config = OmegaConf.create(values)
    for key, value in changes.items():
        OmegaConf.update(config, key.replace("__", "."), value, force_add=True)
    return config


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """This very module, under the name that its classes carry."""
    import sys

    monkeypatch.setitem(sys.modules, Mine.__module__, sys.modules.get(Mine.__module__) or __import__(__name__))


def test_what_is_right_passes():
    config = check(compose(env__size=4, env__noise=1, env__names=["a"]), CHOICES)
    assert config.steps == 10, "interpolations are resolved"
    assert config.env.keys == {"size": 4, "noise": 1.0, "names": ["a"]}
    assert config.env.build(render_mode=None).keys == (4, 1.0, "easy", ["a"])
    assert config.eval.every == 5


def test_numbers_may_be_written_as_people_do():
    assert check(compose(steps=1e6, threads=2.0), CHOICES).steps == 1_000_000


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("env.size", "abc", r"^env\.size=abc: should be a valid integer"),
        ("env.size", 1, r"^env\.size=1: should be greater than or equal to 2"),
        ("env.size", 2.5, r"^env\.size=2\.5: should be a valid integer"),
        ("env.noise", "loud", r"^env\.noise=loud: should be a valid number"),
        ("env.mode", "medium", r"^env\.mode=medium: should be 'easy' or 'hard'"),
        (
            "env.sizee",
            3,
            r"^env\.sizee is not a key \(did you mean env\.size\?\): the keys of env=mine are mode, names, noise,",
        ),
        ("env.render_mode", "human", r"^env\.render_mode is not a key"),
        ("agent.lr", 1, r"^agent\.lr is not a key: agent=random has no keys"),
        ("steps", -1, r"^steps=-1: should be greater than or equal to 1"),
        ("steps", True, r"^steps=True: should be a number"),
        ("num_envs", 0, r"^num_envs=0: should be greater"),
        ("device", "tpu", r"^device=tpu: should be 'auto', 'cpu', 'cuda' or 'mps'"),
        ("compile", "fast", r"^compile=fast: should be true or false$"),
        ("bf16", 3, r"^bf16=3: should be true or false$"),
        ("eval.every", 0, r"^eval\.every=0: should be greater"),
        ("eval.evry", 5, r"^eval\.evry is not a key \(did you mean eval\.every\?\)"),
        ("stepz", 5, r"^stepz is not a key \(did you mean steps\?\)"),
        ("on_error", "reset", r"^on_error is not a key: write env\.on_error$"),
        ("env._target_", "no.such.thing", r"^env\._target_=no\.such\.thing cannot be imported"),
        ("env._target_", "cfn.envs.generic.make", r"^env\.id is not set"),
        ("env", {"size": 3}, r"^env=mine has no _target_"),
        ("eval", 5, r"^eval=5: should be a group of keys \(every, episodes, steps, max_steps\)"),
        ("eval", None, r"^eval=None: should be a group of keys"),
        ("env", None, r"^env=mine has no _target_"),
        ("env._target_", "cfn.types.Metrics.nope", r"cannot be imported"),
        ("env._target_", "cfn.config.CONF", r"is not a class or a function"),
        ("reward_clip", float("inf"), r"^reward_clip=inf: should be a finite number"),
        ("seed", "???", r"^seed is not set and has no default"),
    ],
)
def test_what_is_wrong_is_named(key, value, message):
    config = compose()
    OmegaConf.update(config, key, value, merge=False, force_add=True)
    with pytest.raises(UsageError, match=message):
        check(config, CHOICES)


def test_a_missing_class_is_named_before_values_that_follow_from_it():
    config = compose()
    config.bonus = {"visits": 3}
    config.reward_clip = "${bonus._target_}"
    with pytest.raises(UsageError, match=r"^bonus=\w+ has no _target_: its YAML file must name the class"):
        check(config, CHOICES)


def test_a_preset_needs_an_experiment():
    with pytest.raises(UsageError, match="preset=mini needs an experiment"):
        check(compose(), {**CHOICES, "preset": "mini"})
    check(compose(), {**CHOICES, "preset": "mini", "experiment": "random_walk"})


def test_what_a_constructor_refuses_carries_its_full_key():
    component = Component("env", "mine", Mine, {"size": 13})
    with pytest.raises(UsageError, match=r"^env\.size: 13 is unlucky$"):
        component.build()


def test_a_missing_value_has_its_full_key_also_in_a_group_of_its_own():
    composed = OmegaConf.create({"env": {"id": "???", "kwargs": {"size": "???"}}, "bonus": {}})
    with pytest.raises(UsageError, match=r"^env\.id is not set"):
        require_values(composed.env)
    require_values(composed.bonus)


def test_an_object_of_another_kind_is_refused():
    component = Component("env", "mine", Mine, {"size": 12})
    assert isinstance(component.make(Mine), Mine)
    with pytest.raises(UsageError, match=r"^env=mine is a Mine: it must be derived from cfn\.schema\.Component$"):
        component.make(Component)


FOREIGN = {
    "env": {"_target_": "mine.envs.Corridor"},
    "agent": {"_target_": "mine.Agent"},
    "bonus": {"_target_": "my.B"},
}


def values(**changes):
    return OmegaConf.to_container(compose(), resolve=True) | changes


def test_all_names_that_need_trust_are_asked_for_at_once():
    with pytest.raises(UsageError) as refused:
        from_values(values(**FOREIGN), CHOICES, trusted=[])
    assert str(refused.value) == (
        "env._target_=mine.envs.Corridor, agent._target_=mine.Agent, bonus._target_=my.B are not part of this package: "
        "if you trust them, add --trust mine.envs.Corridor --trust mine.Agent --trust my.B"
    )
    with pytest.raises(UsageError, match=r"^bonus\._target_=my\.B is not part of this package: .* add --trust my\.B$"):
        from_values(values(**FOREIGN), CHOICES, trusted=["mine"])


def test_a_part_needs_trust_as_its_bonus_does():
    """A run folder from a stranger must not import a class that hides inside a bonus of this package."""
    part = {"_target_": "os.system", "command": "true"}
    changed = values(bonus={"_target_": "cfn.bonuses.noveld.NovelDBonus", "novelty": part})
    with pytest.raises(UsageError, match=r"^bonus\.novelty\._target_=os\.system is not part of this package"):
        from_values(changed, CHOICES, trusted=[Mine.__module__])
    changed = values(bonus={"_target_": "cfn.bonuses.none.NoBonus", "deep": {"er": part}})
    with pytest.raises(UsageError, match=r"^bonus\.deep\.er\._target_=os\.system is not part of this package"):
        from_values(changed, CHOICES, trusted=[Mine.__module__])


@pytest.mark.parametrize("env", [None, 3, {}, {"size": 3}], ids=str)
def test_an_option_that_names_no_class_needs_no_trust_and_is_refused(env):
    for changed in (values(env=env), {key: value for key, value in values().items() if key != "env"}):
        with pytest.raises(UsageError, match=r"^env=mine has no _target_"):
            from_values(changed, CHOICES, trusted=[])


def test_parts_inside_a_part_must_be_trusted_too():
    inner = {"tracker": {"_target_": "cfn.tracking.base.several", "mine": {"_target_": "os.system"}}}
    with pytest.raises(UsageError, match=r"tracker\.mine\._target_=os\.system are not part of this package"):
        from_values(values() | inner, CHOICES, trusted=[])


def test_names_of_one_module_can_be_trusted_together():
    target = f"{Mine.__module__}.Mine"
    both = {"env": {"_target_": target}, "bonus": {"_target_": f"{Mine.__module__}.Other"}}
    with pytest.raises(UsageError, match=rf"\(or --trust {Mine.__module__}\)$"):
        from_values(values(**both), CHOICES, trusted=[])
    assert from_values(values(), CHOICES, trusted=[Mine.__module__]).env.target.__name__ == "Mine"
    assert from_values(values(), CHOICES, trusted=[target]).env.target.__name__ == "Mine"
    with pytest.raises(UsageError, match="is not part of this package"):
        from_values(values(), CHOICES, trusted=[Mine.__module__[:-1]])


def test_a_trusted_module_does_not_stand_for_what_it_imports():
    imported = {"env": {"_target_": f"{Mine.__module__}.UsageError"}}
    with pytest.raises(
        UsageError, match=r"UsageError is part of cfn\.errors: if you trust it, add --trust .*UsageError$"
    ):
        from_values(values(**imported), CHOICES, trusted=[Mine.__module__])


def test_the_module_before_an_id_needs_trust():
    gym = {"env": {"_target_": "cfn.envs.generic.make", "id": "mine:Corridor-v0"}}
    with pytest.raises(UsageError, match=r"^env\.id=mine is not part of this package: .* add --trust mine$"):
        from_values(values(**gym), CHOICES, trusted=[])
    assert from_values(values(**gym), CHOICES, trusted=["mine"]).env.keys == {"id": "mine:Corridor-v0"}
