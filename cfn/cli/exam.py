"""`cfn exam`: examine whether a bonus counts."""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from cfn import naming, schema
from cfn.analysis.exams import EXAM_FILE, read_exams, write_reports
from cfn.cli.arguments import Parser
from cfn.cli.output import print_problems
from cfn.config import CONF, component, require_values
from cfn.errors import UsageError
from cfn.launch.composed import without_hydra
from cfn.launch.config_loader import config_loader
from cfn.launch.parts import choosing_parts
from cfn.launch.sweeper import combinations
from cfn.types import NonNegative, Probability

EXAMPLES = """\
examples:
  cfn exam bonus=cfn                                     minutes on a laptop
  cfn exam bonus=cfn bonus.flips=balanced questions=counts,decay
  cfn exam -m bonus=cfn,rnd,elliptical seed=0,1,2        several, with a comparison
  cfn exam bonus=mine --config-dir my_conf               your own bonus
  cfn exam --compare outputs/exam                        table and figures of earlier exams"""


@dataclass(frozen=True)
class ExamConfig:
    """Keys of `cfn exam`, beside those of the bonus.

    Attributes:
        seed: Seed of streams and bonus.
        noise: Fraction of the image that is random, in the question `noise`.
        device: Device of the networks.
        threads: CPU threads of PyTorch.
        outputs: Parent folder of the results.
    """

    seed: NonNegative
    noise: Probability
    device: Literal["auto", "cpu", "cuda", "mps"]
    threads: Annotated[int, Ge(1), Le(1024)]
    outputs: str


def run(arguments: list[str]) -> None:
    """Run `cfn exam`."""
    options = _parser().parse_intermixed_args(arguments)
    if options.compare is not None:
        results, problems = read_exams(options.compare)
        print_problems(problems)
        print(write_reports(results, options.out or Path("exam")), end="")
        return

    from cfn.exam.report_card import require_questions  # PyTorch is slow to import, and help does not need it

    if options.list:
        _list_questions()
        return
    own, overrides = own_keys(options.overrides)
    names = require_questions(own["questions"])
    loader = config_loader(options.config_dir)
    overrides = choosing_parts(overrides, [CONF, *([Path(options.config_dir)] if options.config_dir else [])])
    jobs = combinations(OverridesParser.create(config_loader=loader).parse_overrides(overrides))
    if len(jobs) > 1 and not options.multirun:
        raise UsageError("several values are several exams: add -m")
    composed = [loader.load_configuration("exam", job, RunMode.RUN) for job in jobs]
    exams = [checked(each) for each in composed]  # all, before the first exam begins
    folder = options.out or Path(exams[0][0].outputs) / "exam" / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    for job, (config, bonus) in zip(jobs, exams, strict=True):
        _examine(config, bonus, names, own["preset"], job, folder)
    results, problems = read_exams([folder])
    print_problems(problems)
    print(f"\n{write_reports(results, folder)}", end="")


def _examine(
    config: ExamConfig,
    bonus: schema.Component,
    names: Sequence[str],
    preset: str,
    overrides: Sequence[str],
    folder: Path,
) -> None:
    """Examine one bonus with one seed, and write the results."""
    from cfn import seeding
    from cfn.exam.base import Examiner
    from cfn.exam.candidate import Maker
    from cfn.exam.report_card import examine
    from cfn.exam.sizes import PRESETS
    from cfn.nn import device

    device.limit_threads(config.threads)
    seeding.seed_everything(config.seed)
    kept = sorted(o for o in overrides if o.partition("=")[0] not in ("bonus", "seed", "outputs", "device", "threads"))
    label = " ".join([bonus.name, *kept])
    print(f"{label}, seed {config.seed}", flush=True)
    begun = time.perf_counter()
    examiner = Examiner(Maker(bonus, device.choose(config.device)), config.seed, PRESETS[preset], config.noise)
    results = examine(examiner, names, lambda line: print(f"  {line}", flush=True))
    seconds = time.perf_counter() - begun
    record = {
        "bonus": label,
        "seed": config.seed,
        "preset": preset,
        "seconds": round(seconds, 1),
        "config": {"_target_": f"{bonus.target.__module__}.{bonus.target.__qualname__}", **bonus.keys},
        "questions": results,
    }
    path = folder / naming.safe(label.replace(" ", ",")).replace("/", "-") / f"seed={config.seed}" / EXAM_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, default=str) + "\n", encoding="utf-8")
    print(f"  {seconds:.0f} s, {path}", flush=True)


def own_keys(words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Split the keys `questions` and `preset` from the overrides: their commas are not a sweep."""
    from cfn.exam.sizes import PRESETS

    own: dict[str, Any] = {"questions": [], "preset": "quick"}
    overrides = []
    for word in words:
        key, _, value = word.partition("=")
        if key == "questions":
            own[key] = [name.strip() for name in value.strip("[]").split(",") if name.strip()]
        elif key == "preset":
            if value not in PRESETS:
                raise UsageError(f"preset={value}: there is no such preset; choose from {', '.join(PRESETS)}")
            own[key] = value
        else:
            overrides.append(word)
    return own, overrides


def checked(composed: DictConfig) -> tuple[ExamConfig, schema.Component]:
    """Return the checked config and the bonus of one exam."""
    choices = composed.hydra.runtime.choices
    config = without_hydra(composed)
    require_values(config.bonus)
    values: Any = OmegaConf.to_container(config, resolve=True)
    for group in ("env", "agent", "tracker"):
        for key in values.get(group) or ():
            raise UsageError(f"{group}.{key} is not a key of cfn exam, which needs no {group}: leave it out")
    bonus = component("bonus", values["bonus"], choices)
    keys = {key: value for key, value in values.items() if key not in ("suite", "env", "agent", "bonus", "tracker")}
    return ExamConfig(**schema.checked(ExamConfig, keys, prefix="")), bonus


def _list_questions() -> None:
    from cfn.exam.questions import QUESTIONS

    for question in QUESTIONS.values():
        print(f"{question.name:<8} {question.asks}\n{'':<8} {question.unit}; passes with: {question.mark}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "exam",
        "Examine whether a bonus counts: nine questions on streams of visits whose true counts are known.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="bonus=NAME, keys of the bonus, seed, noise")
    parser.add_argument("-m", "--multirun", action="store_true", help="one exam per combination of values")
    parser.add_argument("--list", action="store_true", help="list the questions (questions=NAME,... selects)")
    parser.add_argument("--config-dir", metavar="DIR", help="folder of your own configs")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the results (outputs/exam/<date-time>)")
    parser.add_argument("--compare", type=Path, nargs="+", metavar="PATH", help="only compare earlier exams")
    return parser
