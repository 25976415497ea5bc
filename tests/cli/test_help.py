"""`cfn train --help`."""

import pytest
from hydra import compose, initialize_config_dir

from cfn.cli.help import Help
from cfn.cli.keys import GROUPS, Composition, explained, first_sentence, shown, type_text
from cfn.config import CONF, Checkpoint, Config, Eval
from cfn.launch.composed import with_agent_for, without_hydra
from cfn.types import NonNegative, Positive, PositiveFloat, Probability

OPTIONS = [(group, path.stem) for group in GROUPS for path in sorted((CONF / group).glob("*.yaml"))]


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    """A terminal of a usual width."""
    monkeypatch.setenv("COLUMNS", "110")


@pytest.mark.thorough
@pytest.mark.parametrize(("group", "option"), OPTIONS, ids="=".join)
def test_every_key_has_a_value_a_type_and_a_meaning(group, option):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        composed = compose("config", overrides=[f"{group}={option}"], return_hydra_config=True)
    config, choices = without_hydra(composed), composed.hydra.runtime.choices
    kinds = ("discrete", "continuous") if option == "auto" else ()
    for chosen, names in [with_agent_for(kind, config, choices) for kind in kinds] or [(config, choices)]:
        section = Composition(chosen, names, ()).of_group(group)
        assert section.problem == ""
        assert [key.name for key in section.keys if not (key.value and key.type and key.meaning)] == []
        assert section.keys or option in ("none", "random", "several")


def test_every_key_of_every_run_has_a_meaning():
    keys = [f"{owner.__name__}.{name}" for owner in (Config, Eval, Checkpoint) for name in owner.__annotations__]
    meanings = [f"{owner.__name__}.{name}" for owner in (Config, Eval, Checkpoint) for name in explained(owner)]
    assert keys == meanings


def test_the_overview_lists_groups_and_keys_with_values_types_and_meanings(call):
    text = call("train", "env=montezuma", "bonus=cfn", "bonus.d=7", "--help").stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "preset paper mini, paper, small" in lines, "no inner groups"
    assert "hydra/" not in text
    assert "${" not in text
    assert "bonus cfn cfn, cfn_tuned, count, cts, drnd, e3b, elliptical, first_visit, icm, none," in " ".join(lines)
    assert "steps 50000000 int >= 1 Length of the run, in agent steps summed over all environments." in " ".join(lines)
    assert "env.game MontezumaRevenge str Name of the game in ALE" in " ".join(lines)
    assert "bonus.d 7 int >= 1 Number of coins per visit." in lines
    meaning = "Weight of 1 / (n_updates + 1) against |f(s)|^2 / d in the priority (Eq. 6)."  # over two lines
    assert f"bonus.alpha 0.5 0 <= float <= 1 {meaning}" in " ".join(lines)
    assert "env.on_error stop stop | reset" in " ".join(lines)
    assert max(map(len, text.splitlines())) <= 120


def test_it_is_as_wide_as_the_terminal_within_limits(monkeypatch):
    for columns, limit in (("60", 105), ("100", 105), ("300", 120)):  # the examples are not wrapped
        monkeypatch.setenv("COLUMNS", columns)
        assert max(map(len, Help([], None).overview().splitlines())) <= limit


def test_half_a_command_is_explained(call):
    done = call("train", "env=gym", "--help")
    assert done.returncode == 0, done.stderr
    assert "env.id (required) str" in " ".join(done.stdout.split())
    assert "agent=rainbow (agent=auto with discrete actions)" in done.stdout
    assert "agent=sac (agent=auto with continuous actions)" in done.stdout
    done = call("train", "env=gym", "env.id=Pendulum-v1", "--help", "agent.tau", "agent.lr")
    assert done.stdout.startswith("agent.tau=0.005\n")
    assert "agent.lr=0.001\n  Learning rate of Adam, for critics" in done.stdout


def test_a_swept_command_is_explained_by_its_first_run(call):
    assert "Value from: suite.rnd.lr, with suite=gridworld" in call(
        "train", "-m", "env=gridworld", "bonus=rnd,cfn", "--help", "bonus.lr"
    ).stdout  # fmt: skip


def test_one_key_is_explained_in_full(call):
    assert call("train", "--help", "bonus.alpha").stdout == (
        "bonus.alpha=0.5\n"
        "  Weight of 1 / (n_updates + 1) against |f(s)|^2 / d in the priority (Eq. 6).\n"
        "  Type: 0 <= float <= 1\n"
        "  Value from: bonus=cfn\n"
    )
    text = call("train", "bonus.flips=zero", "--help", "bonus.flips", "seed", "suite.cfn.lr").stdout
    assert text.startswith("bonus.flips=zero\n")
    assert "Type: rademacher | balanced | gaussian | zero\n  Value from: the command line\n" in text
    assert "seed=0\n  Seed of everything random.\n" in text
    assert "suite.cfn.lr=0.001\n  Default of bonus.lr.\n" in text


def test_a_group_is_explained_with_its_options(call):
    text = call("train", "--help", "bonus", "bonus=none").stdout
    assert "  rnd          Random Network Distillation." in text
    assert "bonus=none: No intrinsic reward. It has no keys." in text
    assert "Figure 5: D4RL's ant" in call("train", "--help", "experiment").stdout
    lines = call("train", "--help", "checkpoint").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["checkpoint.every", "checkpoint.keep"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["bonus.alfa"],
            "bonus.alfa is not a key (did you mean bonus.alpha?): the keys of bonus are alpha, batch_size",
        ),
        (["alpha"], "alpha is not a key: did you mean bonus.alpha?"),
        (["bonuss.alpha"], "bonuss.alpha is not a key: did you mean bonus.alpha"),
        (["zzz"], "zzz is not a key: cfn train --help lists the groups and keys"),
        (["bonus.alfa=1"], "bonus.alfa is not a key (did you mean bonus.alpha?): the keys of bonus=cfn are alpha"),
        (["bonus=nosuch"], "bonus=nosuch: there is no such option; choose from cfn"),
        (["--config-dir", "nowhere"], "--config-dir nowhere: there is no such folder"),
        (["--nosuch"], "unrecognized arguments: --nosuch (see cfn train --help)"),
    ],
    ids=" ".join,
)
def test_what_does_not_exist_gets_a_sentence(call, arguments, message):
    done = call("train", "--help", *arguments)
    assert done.returncode > 0
    assert done.stderr.startswith(f"cfn: {message}")
    assert len(done.stderr.splitlines()) == 1


def test_a_users_own_part_is_explained_by_its_docstring(call, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine.py").write_text(
        'class Bits:\n    """Counts.\n\n    Args:\n        bits: Number of bits.\n            More is finer.\n    """\n'
        "    def __init__(self, bits: int = 4, **other): ...\n"
    )
    (tmp_path / "my_conf" / "bonus").mkdir(parents=True)
    (tmp_path / "my_conf" / "bonus" / "bits.yaml").write_text("# Mine.\n_target_: mine.Bits\nfurther: 1\n")
    (tmp_path / "my_conf" / "bonus" / "broken.yaml").write_text("_target_: mine.Nothing\n")
    own = ("--config-dir", "my_conf", "--help")
    text = call("train", "bonus=bits", *own, "bonus.bits").stdout
    assert text.startswith(
        "bonus.bits=4\n  Number of bits. More is finer.\n  Type: int\n  Value from: default of the code"
    )
    assert "bonus.further  1  any" in call("train", "bonus=bits", *own, "bonus").stdout
    text = call("train", "bonus=broken", *own).stdout
    assert "bonus=broken: bonus._target_=mine.Nothing cannot be imported: mine has no Nothing" in text
    assert "agent.lr" in text


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (Positive, "int >= 1"),
        (NonNegative | None, "int >= 0 or null"),
        (PositiveFloat, "float > 0"),
        (Probability, "0 <= float <= 1"),
        (bool, "true | false"),
        (list[str], "list of str"),
        (list[float | None], "list of (float or null)"),
        (dict[str, int] | None, "mapping or null"),
        (object, "object"),
    ],
    ids=str,
)
def test_types_are_words(hint, text):
    assert type_text(hint) == text


def test_values_are_shown_as_they_are_typed():
    assert [shown(value) for value in (None, True, 1e-5, "a", [1, None], {"a": 0.5})] == [
        "null", "true", "1e-05", "a", "[1,null]", "{a:0.5}",
    ]  # fmt: skip


def test_a_sentence_ends_before_the_next_capital():
    assert first_sentence("See Eq. 6 of it, i.e. below. Then more.") == "See Eq. 6 of it, i.e. below."


def test_parts_are_explained_with_their_own_options():
    text = Help(["bonus=noveld", "bonus@bonus.novelty=cfn"], None).on("bonus")
    assert "\nbonus.novelty=cfn: Coin Flip Network" in text
    assert "  bonus.novelty.d " in text
    one = Help(["bonus=product"], None).on("bonus.episodic.ridge")
    assert one.startswith("bonus.episodic.ridge=0.1\n")
    assert "Value from: bonus=product" in one
