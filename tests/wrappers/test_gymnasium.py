import gymnasium as gym
import numpy as np
import pytest
from counting import FIELDS, Diary, Walk, counts, plain_visits
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from cfn import BonusVectorWrapper, make_bonus
from cfn.bonuses.counts import CountBonus

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def walks(number=3, mode=AutoresetMode.SAME_STEP, walk=Walk, **keys):
    named = [lambda i=i: Walk(name=i) for i in range(number)]
    return SyncVectorEnv(named if walk is Walk else [walk] * number, autoreset_mode=mode, **keys)


def wander(wrapper, mode, steps=60):
    """Random actions; return those that were taken in each environment, and all steps."""
    rng, taken, results = np.random.default_rng(0), [[] for _ in range(wrapper.num_envs)], []
    wrapper.reset(seed=0)
    resetting = np.zeros(wrapper.num_envs, bool)
    for _ in range(steps):
        actions = rng.integers(2, size=wrapper.num_envs)
        results.append((*wrapper.step(actions), resetting))
        for i in np.flatnonzero(~resetting):
            taken[i].append(actions[i])
        ended = results[-1][2] | results[-1][3]
        if mode is AutoresetMode.DISABLED and ended.any():
            wrapper.reset(options={"reset_mask": ended})
        if mode is AutoresetMode.NEXT_STEP:
            resetting = ended & ~resetting
    return taken, results


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("copy", [True, False])
def test_every_visit_is_counted_once_as_in_a_plain_loop(mode, copy):
    diary = Diary()
    taken, _ = wander(BonusVectorWrapper(walks(mode=mode, copy=copy), diary), mode)
    for i, actions in enumerate(taken):
        expected = plain_visits(actions, i)
        assert diary.of(i, *FIELDS) == expected
        assert counts(diary.of(i, "observation")) == counts(expected)
    cells = {row["state"] for row in diary.visits}
    assert (3,) not in cells, "a terminal state is never visited"
    assert (
        len([row for row in diary.visits if row["truncated"]]) > 0 < len([r for r in diary.visits if r["terminated"]])
    )


@pytest.mark.parametrize("mode", MODES)
def test_rewards_are_the_sum_and_a_reset_pays_nothing(mode):
    _, results = wander(BonusVectorWrapper(walks(mode=mode), Diary()), mode)
    for _, rewards, _, _, info, resetting in results:
        assert rewards.tolist() == (info["extrinsic_reward"] + info["intrinsic_reward"]).tolist()
        assert ((info["intrinsic_reward"] == 0) == resetting).all()
        assert (info["intrinsic_reward"][~resetting] >= 10).all()
        assert set(info["extrinsic_reward"]) <= {0.0, 1.0}


def test_the_reward_is_that_of_the_state_in_which_the_action_was_taken():
    wrapper = BonusVectorWrapper(walks(1), Diary())
    wrapper.reset()
    assert [wrapper.step(np.array([1]))[1].item() for _ in range(4)] == [10, 11, 12 + 1, 10]


def test_rewards_can_be_combined_otherwise():
    wrapper = BonusVectorWrapper(walks(1), Diary(), combine=lambda extrinsic, intrinsic: intrinsic / 2)
    wrapper.reset()
    assert wrapper.step(np.array([1]))[1].item() == 5


def test_the_bonus_learns_at_its_own_period():
    diary = Diary()
    wrapper = BonusVectorWrapper(walks(2), diary)
    wrapper.reset()
    updates = []
    for _ in range(5):
        wrapper.step(np.array([0, 0]))
        updates.append(diary.updates)
    assert updates == [0, 1, 2, 2, 3], "once every three steps, of both environments together"
    assert wrapper.take_metrics() == {"bonus/reward": 10.0, "bonus/loss": 2.0}
    assert wrapper.take_metrics() == {}


def test_episode_statistics_inside_are_the_extrinsic_ones():
    envs = gym.wrappers.vector.RecordEpisodeStatistics(walks(1))
    wrapper = BonusVectorWrapper(envs, Diary())
    wrapper.reset()
    for _ in range(3):
        info = wrapper.step(np.array([1]))[4]
    assert info["episode"]["r"].item() == 1


def test_an_oracle_sees_true_states():
    bonus = CountBonus(scale=1.0)
    wrapper = BonusVectorWrapper(walks(2), bonus)
    wrapper.reset()
    assert wrapper.step(np.array([0, 0]))[4]["intrinsic_reward"].tolist() == [2**-0.5] * 2


def test_environments_in_processes_share_the_bonus():
    diary = Diary()
    wrapper = BonusVectorWrapper(AsyncVectorEnv([Walk] * 2, context="fork"), diary)
    wrapper.reset()
    for _ in range(8):
        wrapper.step(np.array([1, 1]))
    wrapper.close()
    assert diary.of(0, *FIELDS) == diary.of(1, *FIELDS) == plain_visits([1] * 6)


def test_the_chosen_entry_is_what_the_bonus_sees():
    class Entries(gym.ObservationWrapper):
        def __init__(self):
            super().__init__(Walk())
            self.observation_space = gym.spaces.Dict(
                there=self.env.observation_space, noise=gym.spaces.Box(0, 1, (3,), np.float32)
            )

        def observation(self, observation):
            return {"there": observation, "noise": self.observation_space["noise"].sample()}

    diary = Diary()
    envs = SyncVectorEnv([Entries] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    wrapper = BonusVectorWrapper(envs, diary, key="there")
    taken, _ = wander(wrapper, AutoresetMode.SAME_STEP, 20)
    assert diary.of(1, *FIELDS) == plain_visits(taken[1])
    for key, message in ((None, "several entries"), ("nowhere", "key='nowhere' is none of their entries")):
        with pytest.raises(ValueError, match=rf"{message}: choose .* one of (there|noise), (there|noise)"):
            BonusVectorWrapper(envs, Diary(), key=key)
    with pytest.raises(ValueError, match="have no named entries: leave key out"):
        BonusVectorWrapper(walks(), Diary(), key="there")


def test_memories_of_episodes_need_all_environments_in_every_step():
    class Episodic(Diary):
        kind = "episode"

    with pytest.raises(ValueError, match=r"make the environments with AutoresetMode\.SAME_STEP"):
        BonusVectorWrapper(walks(2, AutoresetMode.NEXT_STEP), Episodic())
    for envs in (walks(1, AutoresetMode.NEXT_STEP), walks(2, AutoresetMode.SAME_STEP)):
        BonusVectorWrapper(envs, Episodic())


def test_a_single_environment_is_refused():
    with pytest.raises(TypeError, match=r"Walk is no vector environment\. A bonus inside each environment would count"):
        BonusVectorWrapper(Walk(), Diary())


def test_something_else_than_a_bonus_is_refused():
    with pytest.raises(TypeError, match=r"bonus is str, not a Bonus: use make_bonus"):
        BonusVectorWrapper(walks(), "cfn")


def test_a_bonus_belongs_to_one_wrapper():
    diary = Diary()
    first = BonusVectorWrapper(walks(), diary)
    with pytest.raises(ValueError, match="used by another wrapper"):
        BonusVectorWrapper(walks(), diary)
    first.close()
    BonusVectorWrapper(walks(), diary)


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(ValueError, match=r"call reset\(\) before step\(\)"):
        BonusVectorWrapper(walks(1), Diary()).step(np.array([1]))


def test_an_unknown_autoreset_mode_is_refused():
    envs = walks(1)
    envs.metadata = {}
    with pytest.raises(ValueError, match="does not say how it resets environments"):
        BonusVectorWrapper(envs, Diary())


def test_a_saved_bonus_continues_exactly(tmp_path):
    def small():
        space = Walk().observation_space
        bonus = make_bonus("cfn", space, min_size=10, batch_size=8, capacity=200, d=4, hidden=[8], update_period=4)
        return BonusVectorWrapper(walks(walk=lambda: Walk(numbered=False)), bonus)

    first, second = small(), small()
    wander(first, AutoresetMode.SAME_STEP, 31)
    first.save(tmp_path / "bonus")
    second.load(tmp_path / "bonus")
    rest = [wander(wrapper, AutoresetMode.SAME_STEP, 20)[1] for wrapper in (first, second)]
    assert [result[1].tolist() for result in rest[0]] == [result[1].tolist() for result in rest[1]]
    with pytest.raises(ValueError, match="has no saved bonus"):
        second.load(tmp_path / "nowhere")


def test_a_bonus_replaces_a_saved_one_that_has_more_steps(tmp_path):
    def new():
        return BonusVectorWrapper(walks(), make_bonus("count", Walk().observation_space))

    for steps in (40, 10, 25):
        wrapper = new()
        wander(wrapper, AutoresetMode.SAME_STEP, steps)
        wrapper.save(tmp_path)
        loaded = new()
        loaded.load(tmp_path)
        assert loaded._payment.steps == wrapper._payment.steps


def test_a_saved_bonus_that_does_not_fit_or_is_damaged_is_a_sentence(tmp_path):
    space = Walk().observation_space
    saved = BonusVectorWrapper(walks(), make_bonus("rnd", space))
    saved.save(tmp_path)
    for bonus in (make_bonus("cfn", space), make_bonus("simhash", space)):
        with pytest.raises(ValueError, match=r"does not fit this \w+Bonus: make it with the same name, space and keys"):
            BonusVectorWrapper(walks(), bonus).load(tmp_path)
    for path in tmp_path.glob("*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="is damaged"):
        saved.load(tmp_path)
