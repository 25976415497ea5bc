"""The README is true: its pictures are there, and its commands compose."""

import re
from pathlib import Path

import pytest
from composing import composed

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(
    {
        match.group(1).split("#")[0].strip()
        for match in re.finditer(r"(?:^|`)cfn train([^`\n]*)", README, re.M)
        if not re.search(r"--|\.\.\.|\[key|launcher", match.group(1).split("#")[0])
    }
)


def test_every_picture_is_there():
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert len(pictures) >= 4
    assert [picture for picture in pictures if not (ROOT / picture).is_file()] == []
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").iterdir()} == set(pictures)


def test_the_commands_were_found():
    assert {"", "bonus=none", "env=gym env.id=CartPole-v1", "experiment=gridworld_counts preset=mini"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_composes(command):
    """The first run of it, if it is a sweep."""
    words = [re.sub(r"(=[^,\[(]*),.*", r"\1", word) for word in command.split() if word != "-m"]
    overrides = [re.sub(r"range\((\d+)\)", "0", word) for word in words]
    composed(*overrides)
