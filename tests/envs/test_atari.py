import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from cfn.envs.atari import make
from cfn.errors import BadValueError, UsageError

RIGHT, LEFT, DOWN = 3, 4, 5


def ale(env):
    return env.unwrapped.ale


def test_it_is_a_gymnasium_environment():
    env = make()
    check_env(env, skip_render_check=True, skip_close_check=True)
    assert (env.observation_space.shape, env.observation_space.dtype) == ((84, 84), np.uint8)
    assert env.action_space == gym.spaces.Discrete(18)
    env.close()


def test_the_protocol_is_the_papers():
    env = make()
    assert ale(env).getFloat("repeat_action_probability") == 0.25
    assert ale(env).getInt("max_num_frames_per_episode") == 108_000
    _, info = env.reset(seed=0)
    assert info["episode_frame_number"] == 0, "no no-op starts"
    *_, info = env.step(0)
    assert info["episode_frame_number"] == 4
    env.close()


def test_a_lost_life_is_not_the_end():
    env = make(sticky=0)
    _, info = env.reset(seed=0)
    lives = info["lives"]
    for step in range(400):
        _, _, terminated, truncated, info = env.step(RIGHT if step % 50 < 25 else LEFT)
        assert not terminated
        assert not truncated
        if info["lives"] < lives:
            break
    assert info["lives"] == lives - 1, "he fell"
    env.close()


def test_the_true_state_is_where_the_player_is():
    env = make(sticky=0)
    _, info = env.reset(seed=0)
    assert info["state"] == (77, 235, 1), "the middle of the first room"
    states = [env.step(RIGHT)[-1]["state"] for _ in range(3)]
    assert [x for x, _, _ in states] == sorted(x for x, _, _ in states)
    assert states[-1][0] > 77
    assert all(isinstance(part, int) for part in states[-1])
    ram = ale(env).getRAM()
    assert states[-1] == (ram[42], ram[43], ram[3])
    env.close()


def test_a_seed_brings_an_episode_back_also_with_sticky_actions():
    def play(seed):
        env = make(sticky=0.75)
        frames = [env.reset(seed=seed)[0]] + [env.step(action)[0] for action in [RIGHT, LEFT, DOWN] * 10]
        env.close()
        return np.array(frames).tobytes()

    assert play(3) == play(3)
    assert play(3) != play(4)


def test_episodes_are_truncated_after_their_steps():
    env = make(max_steps=5)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]
    env.close()


def test_other_games_have_no_true_state():
    env = make("Breakout")
    assert "state" not in env.reset(seed=0)[1]
    env.close()


def test_an_unknown_game_lists_those_close_to_it():
    with pytest.raises(BadValueError, match=r"no game 'Montezuma'; did you mean MontezumaRevenge"):
        make("Montezuma")


def test_a_missing_rom_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    with pytest.raises(UsageError, match=r"env\.game=Breakout: its ROM cannot be loaded"):
        make("Breakout")


def test_it_greets_nobody(capfd):
    make().close()
    assert capfd.readouterr() == ("", "")
