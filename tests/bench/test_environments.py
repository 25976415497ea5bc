"""How fast the environments step, from Python: one at a time, and several at once."""

import statistics
import time
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from composing import composed
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from measuring import steps_per_second as rates_of
from measuring import told

import cfn.envs  # noqa: F401  # registers the ids
from cfn.envs import atari, making
from cfn.envs.batch import EnvBatch


def steps_per_second(env, steps):
    actions = np.random.default_rng(0).integers(4, size=steps).tolist()
    env.reset(seed=0)
    start = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return steps / (time.perf_counter() - start)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_gridworld_is_cheap(noise, bench):
    env = gym.make("cfn/Gridworld-v0", action_noise=noise, disable_env_checker=True)
    rate = statistics.median(steps_per_second(env, bench.size(50_000, 100)) for _ in range(5))
    bench.report(f"42x42 gridworld, 84x84 images, action noise {noise}: {rate:,.0f} steps per second", rate=rate)
    bench.require(rate >= 100_000)


def ours(num_envs):
    batch, rng = EnvBatch(atari.make, num_envs, seed=0), np.random.default_rng(0)

    def run(steps):
        for _ in range(steps // num_envs):
            batch.begin_episodes()
            batch.step(rng.integers(18, size=num_envs))

    return run


def processes(num_envs):
    """A process for each environment; true states come through pipes."""
    envs = AsyncVectorEnv([atari.make] * num_envs, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    return stepped(envs)


def ale_threads(num_envs):
    """ALE's own threads, set to the same protocol: no true states, no episode seeds, no way to restart explicitly."""
    from ale_py.vector_env import AtariVectorEnv

    envs = AtariVectorEnv(
        "montezuma_revenge", num_envs, repeat_action_probability=0.25, full_action_space=True, stack_num=1,
        noop_max=0, use_fire_reset=False, reward_clipping=False,
    )  # fmt: skip
    envs.reset(seed=0)
    return stepped(envs)


def stepped(envs):
    rng = np.random.default_rng(0)

    def run(steps):
        for _ in range(steps // envs.num_envs):
            _, _, terminated, truncated, _ = envs.step(rng.integers(18, size=envs.num_envs))
            if (ended := terminated | truncated).any() and isinstance(envs, AsyncVectorEnv):
                envs.reset(options={"reset_mask": ended})

    run.close = envs.close
    return run


@pytest.mark.parametrize("env", ["montezuma", "fetch_push"])
def test_two_workers_step_faster_than_one_process(env, bench):
    """Needs two idle cores."""
    config, _ = composed(f"env={env}", "num_envs=8")
    make = partial(making.make, config.env, 1, 0)
    batches = {str(workers): EnvBatch(make, 8, 0, workers=workers) for workers in (1, 2)}
    space = batches["1"].action_space
    space.seed(0)
    actions = [np.stack([space.sample() for _ in range(8)]) for _ in range(400)]

    def stepping(batch):
        def run(steps):
            for step in range(steps // 8):
                batch.begin_episodes()
                batch.step(actions[step % len(actions)])

        return run

    runs = {workers: stepping(batch) for workers, batch in batches.items()}
    rates = rates_of(runs, bench.size(1600, 16), repeats=bench.size(7, 1), warm_up=bench.size(160, 8))
    for batch in batches.values():
        batch.close()
    ratio = rates["2"] / rates["1"]
    text = f"{env}, 8 at once, env_workers=2 beside 1: {ratio:.2f} times as fast (steps per second: {told(rates)})"
    bench.report(text, ratio=ratio, **rates)
    bench.require(ratio >= 1.4)


@pytest.mark.parametrize("num_envs", [1, 4, 8])
def test_montezumas_at_once(num_envs, bench):
    """One environment after another, as `num_envs` steps them, is not far behind processes or ALE's own threads."""
    runs = {"ours": ours(num_envs), "processes": processes(num_envs), "ALE's threads": ale_threads(num_envs)}
    rates = rates_of(runs, bench.size(400, 16), repeats=bench.size(5, 1), warm_up=bench.size(80, 8))
    bench.report(f"Montezuma's Revenge, {num_envs} at once: steps per second: {told(rates)}", **rates)
    runs["processes"].close()
    bench.require(rates["ours"] >= 0.4 * max(rates.values()), "parallel environments would pay after all")
