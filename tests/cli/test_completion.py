"""Shell completion."""

import os
import subprocess

import pytest
from command import CFN

LINES = {
    "cfn ": {"train", "exam", "resume", "eval", "plot", "compare", "runs", "bench", "report"},
    "cfn tr": {"train"},
    "cfn r": {"resume", "runs", "report"},
    "cfn train env=g": {"env=gridworld", "env=gridworld_small", "env=gym"},
    "cfn train env.s": {"env.size="},
    "cfn train -m bonus=c": {"bonus=cfn", "bonus=cfn_tuned", "bonus=count", "bonus=cts"},
    "cfn train env=gridworld ste": {"steps="},
    "cfn plot out": set(),
    "cfn eval out": set(),
    "cfn eval outputs/x ste": set(),
    "cfn resume": {"resume"},
    "cfn resume ": set(),
    "cfn resume out": set(),
    "cfn resume outputs/x ste": {"steps="},
    "cfn resume outputs/x steps=9 eval.ev": {"eval.every="},
    "cfn foo env=": set(),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("line", "expected"), LINES.items(), ids=LINES)
def test_commands_groups_and_keys_are_completed(call, monkeypatch, line, expected):
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    done = call("-sc", "query=bash")
    assert set(done.stdout.split()) == expected
    assert done.stderr == "", "the shell would print it into the line that is typed"


@pytest.mark.thorough
@pytest.mark.parametrize("line", ["cfn tr", "cfn train env=g"])
def test_bash_asks_for_completions(tmp_path, line):
    script = f"""
        eval "$(cfn -sc install=bash)"
        COMP_LINE={line!r} COMP_POINT={len(line)}
        COMP_WORDS=($COMP_LINE); [[ "$COMP_LINE" == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        hydra_bash_completion
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "PATH": f"{CFN.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60
    )
    assert set(done.stdout.split()) == LINES[line], done.stderr
