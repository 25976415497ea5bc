"""The table of commands."""

import cfn as package

WATCH = ("agent=random", "bonus=count")  # nothing that learns
SMALL = (*WATCH, "env.size=7", "env.image_size=14", "steps=300", "eval.every=150", "tracker=none", "pictures=false")


def test_alone_or_with_a_wrong_word_it_names_the_commands(call):
    for arguments, code in [((), 2), (("--help",), 0)]:
        done = call(*arguments)
        assert done.returncode == code
        assert "cfn train [key=value ...]" in done.stdout + done.stderr
    done = call("trian")
    assert done.returncode == 2
    commands = "train, exam, resume, eval, plot, compare, runs, bench, report"
    sentence = f"there is no command 'trian': choose from {commands} (see cfn --help)"
    assert done.stderr == f"cfn: {sentence}\n"


def test_the_version(call):
    assert call("--version").stdout == f"cfn {package.__version__}\n"
