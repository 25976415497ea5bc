import pytest

from cfn import naming

CHOICES = {"env": "gridworld", "agent": "random", "bonus": "count"}


def test_a_run_has_its_place():
    folder = naming.folder(CHOICES, None, "2030-01-02_03-04-05", "", 7)
    assert str(folder) == "gridworld/random-count/2030-01-02_03-04-05/seed=7"
    assert naming.folder(CHOICES, None, "now", "", 1e3).name == "seed=1000"


def test_in_a_sweep_seeds_of_one_setting_sit_side_by_side():
    folders = {
        str(naming.folder(CHOICES, None, "now", f"bonus=count,seed={seed},bonus.scale={scale},steps=5", seed))
        for seed in (0, 1)
        for scale in (0.1, 0.2)
    }
    assert folders == {
        f"gridworld/random-count/now,bonus.scale={scale},steps=5/seed={s}" for scale in (0.1, 0.2) for s in (0, 1)
    }


def test_values_may_hold_commas():
    folder = naming.folder(CHOICES, None, "now", "bonus.hidden=[40,30],seed=1", 1)
    assert folder.parts[2] == "now,bonus.hidden=-40,30-"


def test_a_gymnasium_id_names_its_folder():
    folder = naming.folder({**CHOICES, "env": "gym"}, "ALE/Pong-v5", "now", "", 0)
    assert folder.parts == ("ALE-Pong-v5", "random-count", "now", "seed=0")


def test_a_name_that_is_taken_is_counted_on(tmp_path):
    folder = naming.folder(CHOICES, None, "now", "", 0)
    for expected in ("now", "now-2", "now-3"):
        place = naming.unused(tmp_path, folder)
        assert place.parts == ("gridworld", "random-count", expected, "seed=0")
        (tmp_path / place).mkdir(parents=True)
    assert naming.unused(tmp_path, naming.folder(CHOICES, None, "now", "", 1)).parts[2] == "now", "another seed of it"


@pytest.mark.parametrize(
    "override",
    ["seed=3", "steps=9", "eval.every=3", "tracker.project=x", "device=cpu", "outputs=/x", "hydra.verbose=true"],
)
def test_a_setting_knows_neither_seed_nor_how_it_is_watched(override):
    assert naming.setting(CHOICES, None, ["+env.a=1", override]) == "gridworld/random-count env.a=1"


def test_long_names_are_cut_and_stay_apart():
    names = {naming.folder(CHOICES, None, "now", f"bonus.x={'y' * 300}{i}", 0).parts[2] for i in range(2)}
    assert len(names) == 2
    assert all(len(name) <= 150 for name in names)


def test_names_are_safe():
    name = naming.folder(CHOICES, None, "now", "env.path=/a/b c,env.list=[1,2]", 0).parts[2]
    assert set("/[]'\"*?") & set(name) == set()
