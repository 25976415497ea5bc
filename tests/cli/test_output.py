"""The commands that read runs: what they share."""

import pytest
from folders import make_run


@pytest.mark.parametrize("command", ["plot", "runs", "report"])
def test_folders_without_runs(call, tmp_path, command):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    assert call(command, "empty")[::2] == (1, "cfn: empty is empty\n")
    sentence = "cfn: other holds no run: none of its folders has a metrics.jsonl\n"
    assert call(command, "other")[::2] == (1, sentence)
    assert call(command, "missing")[::2] == (1, "cfn: missing: there is no such folder\n")
    code, _, err = call(command, "other/file")
    assert (code, err) == (1, "cfn: other/file is a file: name a run folder, or a folder above runs\n")
    assert not (tmp_path / "plots").exists()


@pytest.mark.parametrize("command", ["plot", "report"])
def test_an_out_that_cannot_be(call, tmp_path, command):
    make_run(tmp_path / "runs")
    (tmp_path / "file").write_text("")
    code, _, err = call(command, "runs", "--out", "file/below/it")
    assert code == 1
    assert (
        err
        == {
            "plot": "cfn: --out file/below/it: Not a directory; choose a writable folder\n",
            "report": "cfn: --out file/below: Not a directory; choose a writable folder\n",
        }[command]
    )


@pytest.mark.parametrize("arguments", [("plot",), ("plot", "a", "--format", "bmp"), ("runs", "a", "b"), ("report",)])
def test_wrong_arguments_are_one_sentence(call, arguments):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("cfn: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["plot", "runs", "report"])
def test_help(call, command):
    code, out, _ = call(command, "--help")
    assert code == 0
    assert out.startswith(f"usage: cfn {command} ")


def test_a_listing_needs_neither_pytorch_nor_matplotlib(cfn, tmp_path):
    make_run(tmp_path / "runs")
    done = cfn("runs", "runs", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert "gridworld" in done.stdout
    assert "| torch\n" not in done.stderr
    assert "| matplotlib\n" not in done.stderr
