import pytest

from cfn import naming

CHOICES = {"env": "gridworld", "agent": "random", "bonus": "count"}


def test_a_run_has_its_place():
    folder = naming.folder("outputs", CHOICES, None, "2030-01-02_03-04-05", [], 7)
    assert str(folder) == "outputs/gridworld/random-count/2030-01-02_03-04-05/seed=7"


def test_in_a_sweep_seeds_of_one_setting_sit_side_by_side():
    folders = {
        str(naming.folder("o", CHOICES, None, "now", [f"seed={seed}", f"bonus.scale={scale}", "tracker=none"], seed))
        for seed in (0, 1)
        for scale in (0.1, 0.2)
    }
    assert folders == {
        f"o/gridworld/random-count/now,bonus.scale={scale}/seed={s}" for scale in (0.1, 0.2) for s in (0, 1)
    }


def test_a_gymnasium_id_names_its_folder():
    folder = naming.folder("o", {**CHOICES, "env": "gym"}, "ALE/Pong-v5", "now", [], 0)
    assert folder.parts == ("o", "ALE-Pong-v5", "random-count", "now", "seed=0")


@pytest.mark.parametrize(
    "override",
    ["seed=3", "steps=9", "eval.every=3", "tracker.project=x", "device=cpu", "outputs=/x", "hydra.verbose=true"],
)
def test_a_setting_knows_neither_seed_nor_how_it_is_watched(override):
    assert naming.setting(CHOICES, None, ["+env.a=1", override]) == "gridworld/random-count env.a=1"


def test_long_names_are_cut_and_stay_apart():
    names = {naming.folder("o", CHOICES, None, "now", [f"bonus.x={'y' * 300}{i}"], 0).parts[3] for i in range(2)}
    assert len(names) == 2
    assert all(len(name) <= 150 for name in names)


def test_names_are_safe():
    name = naming.folder("o", CHOICES, None, "now", ["env.path=/a/b c", "env.list=[1,2]"], 0).parts[3]
    assert set("/[]'\"*?") & set(name) == set()
