"""`cfn exam`: selecting, sweeping, a user's own bonus, comparing, and sentences for bad input."""

import json

import pytest

from cfn.cli.exam import run
from cfn.cli.messages import describe
from cfn.errors import UsageError

QUICK = ("questions=decay,scale", "bonus=count")


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_one_exam_writes_a_file_a_table_and_a_page(tmp_path, capsys):
    run([*QUICK, f"outputs={tmp_path}", "seed=3"])
    (folder,) = (tmp_path / "exam").iterdir()
    assert files(folder) == ["count.png", "count/seed=3/exam.json", "exam.md"]
    record = json.loads((folder / "count" / "seed=3" / "exam.json").read_text())
    assert (record["bonus"], record["seed"], record["preset"]) == ("count", 3, "quick")
    assert list(record["questions"]) == ["decay", "scale"]
    assert record["config"]["_target_"] == "cfn.bonuses.counts.CountBonus"
    printed = capsys.readouterr().out
    assert "| count | 1 | 0.5 [1/1] | 1 [1/1] |" in printed
    assert "| decay | exponent | 0.5 |" in (folder / "exam.md").read_text()


@pytest.mark.thorough
def test_several_exams_are_compared(tmp_path, capsys):
    run(["-m", "bonus=count,none", "seed=0,1", "questions=decay", "--out", str(tmp_path)])
    assert "comparison.png" in files(tmp_path)
    assert len([name for name in files(tmp_path) if name.endswith("exam.json")]) == 4
    assert "| none | 2 | 0 [0/2] |" in capsys.readouterr().out
    run(["--compare", str(tmp_path), "--out", str(tmp_path / "again")])
    assert "| count | 2 | 0.5 [2/2] |" in capsys.readouterr().out
    assert (tmp_path / "again" / "comparison.png").is_file()


@pytest.mark.thorough
def test_keys_of_the_bonus_are_part_of_its_name(tmp_path, capsys):
    run(["bonus=elliptical", "bonus.features=32", "bonus.ridge=0.1", "questions=scale", "--out", str(tmp_path)])
    assert "elliptical bonus.features=32 bonus.ridge=0.1, seed 0" in capsys.readouterr().out
    (path,) = tmp_path.rglob("exam.json")
    assert json.loads(path.read_text())["config"]["ridge"] == 0.1


def test_a_users_own_bonus_sits_it_without_another_line(tmp_path, capsys, monkeypatch):
    (tmp_path / "conf" / "bonus").mkdir(parents=True)
    (tmp_path / "conf" / "bonus" / "mine.yaml").write_text("_target_: examinees.Tabular\npower: 1.0\n")
    run(["bonus=mine", "--config-dir", str(tmp_path / "conf"), "questions=decay", "--out", str(tmp_path / "out")])
    assert "| mine | 1 | 1 [0/1] |" in capsys.readouterr().out


def test_a_broken_bonus_fails_its_question_and_the_others_go_on(tmp_path, capsys):
    (tmp_path / "bonus").mkdir()
    (tmp_path / "bonus" / "mine.yaml").write_text("_target_: examinees.Broken\nfault: raises\n")
    run(["bonus=mine", "--config-dir", str(tmp_path), "questions=decay,cost", "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "error [0/1]" in printed
    assert "mine, decay: the bonus raises ZeroDivisionError: by zero" in printed


def test_the_questions_are_listed(capsys):
    run(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[::2]] == [
        "counts", "decay", "unseen", "speed", "memory", "order", "noise", "scale", "cost",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["bonus=cfn,rnd"], "several values are several exams: add -m"),
        (["questions=count"], "questions=count: there is no such question; choose from counts"),
        (["preset=huge"], "preset=huge: there is no such preset; choose from quick, thorough"),
        (["bonus=cfm"], "bonus=cfm: there is no such option; choose from"),
        (["bonus.learning_rate=1"], "bonus.learning_rate is not a key"),
        (["noise=2"], "noise=2: should be less than or equal to 1"),
        (["bonus.eviction=lru"], "bonus.eviction=lru: should be 'fifo' or 'novelty'"),
        (["--compare", "nowhere"], "there is no exam.json in nowhere"),
    ],
)
def test_bad_input_gives_a_sentence(arguments, sentence):
    with pytest.raises(Exception) as raised:  # noqa: PT011  # Hydra's errors, too, become sentences
        run(arguments)
    assert sentence in describe(raised.value)


def test_a_bonus_whose_keys_contradict_each_other_fails_with_a_sentence(tmp_path, capsys):
    run(["bonus.eviction=novelty", "bonus.prioritize=false", "questions=decay", "--out", str(tmp_path)])
    assert "bonus.eviction: novelty is known from the priorities" in capsys.readouterr().out


def test_nothing_to_compare_is_an_error(tmp_path):
    (tmp_path / "exam.json").write_text("{}")
    with pytest.raises(UsageError, match="is left out: it is not the result of an exam"):
        run(["--compare", str(tmp_path)])


def test_later_exams_are_merged_with_earlier_ones_of_the_same_preset(tmp_path, capsys):
    for number, questions in enumerate(("decay", "scale")):
        run(["bonus=count", f"questions={questions}", "--out", str(tmp_path / str(9 - number))])
    capsys.readouterr()
    run(["--compare", str(tmp_path), "--out", str(tmp_path / "table")])
    assert "| count | 1 | 0.5 [1/1] | 1 [1/1] |" in capsys.readouterr().out
    run(["bonus=count", "questions=scale", "preset=thorough", "--out", str(tmp_path / "thorough")])
    capsys.readouterr()
    run(["--compare", str(tmp_path), "--out", str(tmp_path / "table")])
    printed = capsys.readouterr().out
    assert "| count preset=quick | 1 | 0.5 [1/1] | 1 [1/1] |" in printed
    assert "| count preset=thorough | 1 |  | 1 [1/1] |" in printed


@pytest.mark.parametrize("key", ["env.size=3", "agent.lr=1", "tracker.project=x"])
def test_keys_of_groups_that_the_exam_does_not_need_are_refused(key, tmp_path):
    name = key.partition("=")[0]
    with pytest.raises(UsageError, match=rf"{name} is not a key of cfn exam"):
        run(["bonus=none", key, "--out", str(tmp_path)])
