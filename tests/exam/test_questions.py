"""The questions: the oracle answers all of them, and each kind of wrong bonus is caught by the right one."""

import pytest
from examinees import Blind, Broken, Tabular

from cfn.bonuses.coin_flip import CoinFlipBonus
from cfn.bonuses.counts import CountBonus
from cfn.bonuses.elliptical import EllipticalBonus
from cfn.bonuses.none import NoBonus
from cfn.bonuses.noveld import NovelDBonus
from cfn.bonuses.pixelcnn import PixelCNNBonus
from cfn.errors import UsageError
from cfn.exam.base import Examiner
from cfn.exam.candidate import Maker
from cfn.exam.questions import QUESTIONS
from cfn.exam.report_card import examine, require_questions
from cfn.exam.sizes import PRESETS, Sizes
from cfn.schema import Component

SMALL = Sizes(
    counts=400, most=64, unseen=400, before=150, after=600, often=20, long=300, capacity=150, order=200, noise=32,
    distinct=(150,),
)  # fmt: skip


def examined(target, questions=(), sizes=SMALL, seed=0, noise=0.1, **keys):
    examiner = Examiner(Maker(Component("bonus", "mine", target, keys)), seed, sizes, noise)
    return examine(examiner, require_questions(questions))


def verdicts(results):
    return {name: result["passed"] for name, result in results.items()}


MARKED = [name for name in QUESTIONS if name != "cost"]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_oracle_is_perfect(seed):
    results = examined(CountBonus, seed=seed)
    assert verdicts(results) == dict.fromkeys(MARKED, True) | {"cost": None}
    numbers = {name: result["numbers"] for name, result in results.items()}
    assert numbers["counts"]["mse"] == 0
    assert numbers["counts"]["slope"] == pytest.approx(1)
    assert numbers["counts"]["spearman"] == pytest.approx(1)
    assert numbers["decay"]["exponent"] == pytest.approx(0.5)
    assert numbers["noise"]["exponent"] == pytest.approx(0.5)
    assert numbers["unseen"] == {"auc": 1, "bonus": 1}
    assert (numbers["memory"]["drift"], numbers["order"]["difference"]) == (1, 0)
    assert numbers["scale"] == {"factor": pytest.approx(1), "spread": pytest.approx(0, abs=1e-6)}


def test_no_bonus_fails_everything():
    assert verdicts(examined(NoBonus)) == dict.fromkeys(MARKED, False) | {"cost": None}


def test_a_bonus_that_decays_too_fast_is_caught_by_the_decay_law():
    results = examined(Tabular, power=1.0)
    assert results["decay"]["numbers"]["exponent"] == pytest.approx(1)
    failed = {name for name, passed in verdicts(results).items() if passed is False}
    assert {"decay", "counts", "scale", "speed"} == failed, "it orders, separates and remembers"


def test_memory_is_asked_of_a_bonus_whose_batch_does_not_fit_the_small_buffer():
    (result,) = examined(CoinFlipBonus, ["memory"], batch_size=200, min_size=100, capacity=500).values()
    assert "error" not in result
    assert result["numbers"]["drift"] >= 1
    assert result["numbers"]["drift_small"] is None
    assert result["notes"] == [
        "small buffer: bonus.capacity: 150 states cannot fill a batch of batch_size=200: choose more"
    ]


def test_a_bonus_that_forgets_is_caught_by_memory():
    results = examined(Tabular, window=250)
    assert results["memory"]["numbers"]["drift"] > 2
    assert results["memory"]["passed"] is False
    assert results["decay"]["passed"] is True, "within its window it counts"


def test_a_bonus_that_ignores_its_input_separates_nothing():
    results = examined(Blind)
    assert results["unseen"]["numbers"]["auc"] == 0.5
    assert results["counts"]["numbers"]["spearman"] == 0
    assert not any(results[name]["passed"] for name in ("unseen", "counts", "decay", "noise", "scale"))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("raises", "the bonus raises ZeroDivisionError: by zero"),
        ("nan", "`novelty` returns NaN or infinity"),
        ("shape", "`observe` returns an array of shape"),
        ("changes", "`novelty` changes the bonus"),
    ],
)
def test_a_broken_bonus_fails_with_a_sentence(fault, sentence):
    results = examined(Broken, ["decay", "unseen"], fault=fault)
    for name in ("decay", "unseen"):
        assert results[name]["passed"] is False
        assert "\n" not in results[name]["error"]
    assert sentence in results["decay"]["error"] or fault == "nan"
    assert "NaN" in results["decay"]["error"] or fault != "nan"


def test_a_bonus_that_is_broken_on_some_streams_fails_the_counts():
    results = examined(Broken, ["counts"], fault="nan on vectors")
    assert results["counts"]["passed"] is False
    assert results["counts"]["error"].endswith("returns NaN or infinity")


def test_a_bonus_of_next_states_can_be_examined():
    results = examined(NovelDBonus, ["decay"], novelty=Component("bonus.novelty", "count", CountBonus, {}))
    assert results["decay"]["passed"] is True


@pytest.mark.parametrize(("noise", "share"), [(0.0, 0), (0.01, 1 / 12), (0.1, 1 / 12), (0.25, 3 / 12)])
def test_noise_covers_rows_of_cells(noise, share):
    assert examined(CountBonus, ["noise"], noise=noise)["noise"]["numbers"]["share"] == share


def test_noise_that_leaves_no_room_for_the_states_is_refused():
    (result,) = examined(CountBonus, ["noise"], noise=0.97).values()
    assert result["error"] == "noise=0.97: the image has no room for 12 states; choose at most 0.91"
    assert examined(CountBonus, ["noise"], noise=0.91)["noise"]["passed"]


def test_a_bonus_for_images_is_asked_what_it_can_answer():
    tiny = Sizes(counts=20, most=2)
    results = examined(PixelCNNBonus, ["counts", "decay"], sizes=tiny, side=8)
    assert [note.partition(":")[0] for note in results["counts"]["notes"]] == ["one-hot", "blobs"]
    assert {"gridworld_mse", "taxi_mse"} <= results["counts"]["numbers"].keys()
    assert "one-hot_mse" not in results["counts"]["numbers"]
    assert "exponent" in results["decay"]["numbers"]


@pytest.mark.thorough
def test_the_closed_form_counts_but_noise_is_new_to_it():
    results = examined(EllipticalBonus, ["decay", "order", "noise", "scale"], features=256)
    assert verdicts(results) == {"decay": True, "order": True, "noise": False, "scale": True}


def test_without_noise_the_noise_question_is_the_decay_law():
    assert examined(EllipticalBonus, ["noise"], features=256, noise=0.0)["noise"]["passed"] is True


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_answers():
    asked = ["counts", "unseen", "noise"]
    one, two, other = (examined(EllipticalBonus, asked, seed=seed, features=64) for seed in (0, 0, 1))
    assert one == two
    assert one != other


def test_an_unknown_question_lists_the_known_ones():
    with pytest.raises(UsageError, match="questions=count: there is no such question; choose from counts, decay"):
        require_questions(["count"])
    assert require_questions([]) == list(QUESTIONS)
    assert require_questions(["noise", "counts"]) == ["counts", "noise"]


def test_a_small_buffer_is_asked_of_bonuses_that_have_one():
    assert not Maker(Component("bonus", "mine", CountBonus, {})).has("capacity")
    assert PRESETS["quick"].capacity < 10 * PRESETS["quick"].often + PRESETS["quick"].long
