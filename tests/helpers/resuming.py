"""Runs that are stopped in the middle and resumed, beside the same runs that are not."""

from hydra import compose, initialize_config_dir
from metrics import rows
from omegaconf import OmegaConf

from cfn.config import CONF, from_values
from cfn.launch.composed import with_agent
from cfn.runs.folder import Run
from cfn.training import resume
from cfn.training.autosave import Autosave
from cfn.training.loop import Training

COMMON = ("tracker=none", "pictures=false", "threads=1", "eval.episodes=1", "eval.steps=0", "device=cpu")
IMAGES = ("agent.min_size=40", "agent.batch_size=4", "agent.capacity=90", "agent.channels=[4,4,4]", "agent.hidden=[8]")
GRID = ("env=gridworld_small", "env.size=7", "env.image_size=14", *IMAGES)
TAXI = ("env=taxi5", "env.image_size=34")
MONTEZUMA = ("env=montezuma", "env.max_steps=70", *IMAGES)
CARTPOLE = ("env=gym", "env.id=CartPole-v1", "env.bin=0.5", "agent.min_size=40", "agent.hidden=[16]")
ROBOT = ("agent.min_size=40", "agent.batch_size=8", "agent.capacity=90", "agent.hidden=[16]")
CFN = ("bonus=cfn", "bonus.min_size=20", "bonus.batch_size=8", "bonus.capacity=70")
SMALL_CFN = (*CFN, "bonus.channels=[4,4,4]")
VECTOR_CFN = (*CFN, "bonus.hidden=[16]")
PIXELCNN = ("bonus=pixelcnn", "bonus.side=14")
LEARNER = ("bonus.min_size=20", "bonus.batch_size=8", "bonus.capacity=70")
PRODUCT = ("bonus=product", "bonus@bonus.global=cfn", "bonus@bonus.episodic=e3b")
PRODUCT += tuple(key.replace("bonus.", f"bonus.{part}.") for key in LEARNER for part in ("global", "episodic"))
FAMILY = (
    ("bonus=simhash", "bonus.centre=60"),
    ("bonus=drnd", "bonus.targets=3", *LEARNER),
    ("bonus=e3b", *LEARNER),
    ("bonus=icm", *LEARNER),
    ("bonus=successor", *LEARNER, "bonus.features=16", "bonus.target_period=30", "bonus.update_period=2"),
    ("bonus=noveld",),
    PRODUCT,
    ("bonus=first_visit",),
)
ENVIRONMENTS = {
    "gridworld": (
        GRID,
        SMALL_CFN,
        ("bonus=rnd",),
        PIXELCNN,
        ("bonus=none",),
        ("bonus=count",),
        ("bonus=cts",),
        *FAMILY,
    ),
    "taxi": (TAXI, SMALL_CFN, ("bonus=rnd",), PIXELCNN, ("bonus=none",)),
    "montezuma": (MONTEZUMA, SMALL_CFN, ("bonus=rnd",), PIXELCNN, ("bonus=none",)),
    "cartpole": (CARTPOLE, VECTOR_CFN, ("bonus=rnd",), ("bonus=none",), *FAMILY),
    "fetch": (("env=fetch_push", *ROBOT), VECTOR_CFN, ("bonus=rnd",), ("bonus=none",), *FAMILY),
    "adroit": (("env=relocate", *ROBOT), VECTOR_CFN, ("bonus=rnd",), ("bonus=none",)),
    "ant": (("env=antmaze", *ROBOT), VECTOR_CFN, ("bonus=rnd",), ("bonus=none",)),
}
"""By name: an environment's overrides, and those of the bonuses that apply to it."""


def claimed(folder, *overrides):
    """A run in this folder, just begun, and what it trains."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=[*COMMON, *overrides], return_hydra_config=True)
    choices = OmegaConf.to_container(config.hydra.runtime.choices)
    config._set_flag("struct", False)
    del config["hydra"]
    config, choices = with_agent(config, choices)
    values = OmegaConf.to_container(config, resolve=True)
    run = Run(folder, choices["env"], choices["agent"], choices["bonus"], values["seed"], "a setting", values)
    run.claim({"hydra": {"runtime": {"choices": choices}}}, list(overrides))
    return run, Training(from_values(values, choices))


def broken_off(folder, at, monkeypatch, *overrides):
    """A run that ends at this step as if killed: without another word."""
    run, training = claimed(folder, *overrides)
    begin_episodes, save = training.envs.begin_episodes, Autosave.__call__

    def die():
        if training.step >= at:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training.envs, "begin_episodes", lambda: (die(), begin_episodes())[1])
        patch.setattr(Autosave, "__call__", lambda autosave, training: (save(autosave, training), die()))
        try:
            training.run(run)
        except KeyboardInterrupt:
            return run
    raise AssertionError("it was not broken off")


def resumed(run, monkeypatch, *overrides, add_tracker=None):
    """Go on with a run, without touching the test's own logging."""
    with monkeypatch.context() as patch:
        patch.setattr(resume, "_log_to", lambda path: None)
        resume.resume(run.folder, overrides, [], add_tracker)
    return rows(run.folder)
