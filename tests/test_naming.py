import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfn import naming

CHOICES = {"env": "gridworld", "agent": "random", "bonus": "count"}
ATARI = {**CHOICES, "env": "atari"}


def test_a_run_has_its_place():
    folder = naming.folder(CHOICES, {}, "2030-01-02_03-04-05", "", 7)
    assert str(folder) == "gridworld/random-count/2030-01-02_03-04-05/seed=7"
    assert naming.folder(CHOICES, {}, "now", "", 1e3).name == "seed=1000"


def test_in_a_sweep_seeds_of_one_setting_sit_side_by_side():
    folders = {
        str(naming.folder(CHOICES, {}, "now", f"bonus=count,seed={seed},bonus.scale={scale},steps=5", seed))
        for seed in (0, 1)
        for scale in (0.1, 0.2)
    }
    assert folders == {
        f"gridworld/random-count/now,bonus.scale={scale},steps=5/seed={s}" for scale in (0.1, 0.2) for s in (0, 1)
    }


def test_values_may_hold_commas():
    folder = naming.folder(CHOICES, {}, "now", "bonus.hidden=[40,30],seed=1", 1)
    assert folder.parts[2] == "now,bonus.hidden=-40,30-"


def test_a_gymnasium_id_names_its_folder():
    folder = naming.folder({**CHOICES, "env": "gym"}, {"id": "ALE/Pong-v5"}, "now", "", 0)
    assert folder.parts == ("ALE-Pong-v5", "random-count", "now", "seed=0")


def test_an_atari_game_names_its_folder():
    folder = naming.folder(ATARI, {"game": "Breakout"}, "now", "env.game=Breakout,bonus.scale=2", 0)
    assert folder.parts == ("atari-Breakout", "random-count", "now,bonus.scale=2", "seed=0")
    overrides = ["env=atari", "env.game=Breakout", "env.sticky=0"]
    assert naming.setting(ATARI, {"game": "Breakout"}, overrides) == "atari-Breakout/random-count env.sticky=0"
    assert naming.environment("atari", {"game": "../x"}) == "atari-..-x"
    assert naming.environment("atari", {}) == "atari", "refused later, with the key"


def test_other_options_are_named_by_themselves():
    assert naming.environment("montezuma", {"game": "MontezumaRevenge"}) == "montezuma"
    assert naming.environment("mine", {"id": 3, "game": "x"}) == "mine"
    mine = {**CHOICES, "env": "mine"}
    assert naming.setting(mine, {"id": 3}, ["env.id=3"]) == "mine/random-count env.id=3", "its name does not show it"


def test_a_name_that_is_taken_is_counted_on(tmp_path):
    folder = naming.folder(CHOICES, {}, "now", "", 0)
    for expected in ("now", "now-2", "now-3"):
        place = naming.unused(tmp_path, folder)
        assert place.parts == ("gridworld", "random-count", expected, "seed=0")
        (tmp_path / place).mkdir(parents=True)
    assert naming.unused(tmp_path, naming.folder(CHOICES, {}, "now", "", 1)).parts[2] == "now", "another seed of it"


@pytest.mark.parametrize(
    "override",
    ["seed=3", "steps=9", "eval.every=3", "tracker.project=x", "device=cpu", "outputs=/x", "hydra.verbose=true"],
)
def test_a_setting_knows_neither_seed_nor_how_it_is_watched(override):
    assert naming.setting(CHOICES, {}, ["+env.a=1", override]) == "gridworld/random-count env.a=1"


LONG = ["agent.batch_size=32", "agent.hidden=[16]", *(f"bonus.some_key_{i}={i}" for i in range(1, 10))]
FIRST = "gridworld/random-count agent.batch_size=32"


def test_a_setting_that_fits_has_its_keys_in_full():
    pairs = "agent.hidden=-16- bonus.some_key_1=1 bonus.some_key_2=2 bonus.some_key_3=3"
    assert naming.setting(CHOICES, {}, reversed(LONG[:5])) == f"{FIRST} {pairs}"


def test_a_long_setting_names_each_group_once():
    pairs = ".hidden=-16- bonus.some_key_1=1 .some_key_2=2 .some_key_3=3 .some_key_4=4"
    assert naming.setting(CHOICES, {}, LONG[:6]) == f"{FIRST} {pairs}"


def test_a_longer_setting_has_the_number_of_the_keys_left_out():
    first, other = (
        naming.setting(CHOICES, {}, [*LONG[:8], last]) for last in ("bonus.some_key_z=1", "bonus.some_key_z=2")
    )
    assert re.fullmatch(
        rf"{FIRST} .hidden=-16- bonus.some_key_1=1 .some_key_2=2 and 5 more keys \([0-9a-f]{{8}}\)", first
    )
    assert first[:-10] == other[:-10]
    assert first != other
    one = naming.setting(CHOICES, {}, ["agent.batch_size=32", f"agent.hidden={'9' * 200}", "bonus.lr=1"])
    assert re.fullmatch(rf"{FIRST} bonus.lr=1 and 1 more key \([0-9a-f]{{8}}\)", one), "the long one is left out"


pairs = st.dictionaries(
    st.sampled_from(
        ["reward_clip", *(f"{group}.key_{i}" for group in ("agent", "bonus", "suite.cfn") for i in range(9))]
    ),
    st.sampled_from(["1", "0.001", "true", "x" * 50, "y" * 200]),
)


@given(pairs, pairs)
def test_different_settings_have_different_names(one, other):
    overrides = [[f"{key}={value}" for key, value in values.items()] for values in (one, other)]
    settings = [naming.setting(CHOICES, {}, some) for some in overrides]
    folders = [naming.folder(CHOICES, {}, "now", ",".join(sorted(some)), 0).parts[2] for some in overrides]
    for names, limit, safe in ((settings, 120, r"[\w.=,/ ()-]+"), (folders, 150, r"[\w.=,-]+")):
        assert len(set(names)) == 1 + (one != other)
        assert all(len(name) <= limit and re.fullmatch(safe, name) for name in names)


def test_long_names_are_cut_and_stay_apart():
    names = {naming.folder(CHOICES, {}, "now", f"bonus.x={'y' * 300}{i}", 0).parts[2] for i in range(2)}
    assert len(names) == 2
    assert all(re.fullmatch("now,and-1-more-key-[0-9a-f]{8}", name) for name in names)
    setting = naming.setting({**CHOICES, "env": "gym"}, {"id": "x" * 300}, LONG)
    assert len(setting) <= 120


def test_names_are_safe():
    name = naming.folder(CHOICES, {}, "now", "env.path=/a/b c,env.list=[1,2]", 0).parts[2]
    assert set("/[]'\"*?") & set(name) == set()


def test_the_choice_of_a_part_is_part_of_the_setting():
    overrides = ["bonus=noveld", "bonus@bonus.novelty=cfn", "bonus.novelty.lr=1"]
    choices = {"env": "taxi5", "agent": "rainbow", "bonus": "noveld"}
    assert naming.setting(choices, {}, overrides) == "taxi5/rainbow-noveld bonus.novelty.lr=1 bonus.novelty=cfn"
    folder = naming.folder(choices, {}, "now", "bonus@bonus.novelty=cfn,seed=1", 1)
    assert str(folder) == "taxi5/rainbow-noveld/now,bonus.novelty=cfn/seed=1"
    assert naming.part_key("suite@_global_.suite=x") == "suite@_global_.suite=x"
