"""Which results are older than the answers of the default, and how to measure them again.

    python -m experiments.renew --check    name the studies with older lines; exit 1 if any
    python -m experiments.renew            measure them again and write tables: hours
    python -m experiments.renew money      some of them

docs/results/answers.json holds digests of what default fits answer (`benchmarks.answers`),
and the commit where they were first seen. A line of a study is older if it was measured at
a commit that does not come after that one. Older lines are deleted just before their study
is run, so that the same command goes on where it was interrupted. Digests depend on the
versions of NumPy, SciPy and scikit-learn: with others than those noted, nothing is said.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import answers
from experiments import run
from experiments import study as registry
from experiments.provenance import git
from experiments.results import FOLDER, Line, read, replace_lines
from experiments.study import Study

# Fits by default settings, of classes, numbers, gaps, weights and unequal losses.
DEFAULTS = (
    "auto",
    "auto, three sensors",
    "three classes",
    "loss matrix",
    "missing values",
    "sample weights",
    "frame of numbers",
)
# What counts as an answer: words and forms of files do not make a result old.
SAID = ("predict", "predict_proba", "acquired", "acquisition_cost")
NOTED = "answers.json"


class Answers(NamedTuple):
    """What default fits answer, with which versions, and where that was first seen."""

    commit: str
    made_with: dict[str, str]
    digests: dict[str, dict[str, str]]


def answers_now() -> Answers:
    """What default fits answer at this commit."""
    found = answers.run(answers.wanted_fits(DEFAULTS))
    failed = [name for name, each in found.items() if not each]
    if failed:
        raise SystemExit(
            f"the fit {failed[0]!r} of benchmarks.answers fails, as said above: no result "
            f"can be compared with it. Mend it first."
        )
    digests = {
        name: {said: each[said] for said in SAID if said in each}
        for name, each in found.items()
    }
    return Answers(git("rev-parse", "HEAD"), answers.makers(), digests)


def noted_answers(folder: Path, now: Answers) -> Answers:
    """The answers that are noted, or those of now if they differ from them."""
    path = folder / NOTED
    if not path.exists():
        return now
    noted = Answers(**json.loads(path.read_text(encoding="utf-8")))
    if noted.made_with != now.made_with:
        changed = [
            f"{name} {version} (here {now.made_with.get(name)})"
            for name, version in noted.made_with.items()
            if now.made_with.get(name) != version
        ]
        raise SystemExit(
            f"{path} was made with {', '.join(changed)}: digests of two versions cannot "
            f"be compared. Install those of constraints.txt, or delete the file to measure "
            f"everything again."
        )
    return noted if noted.digests == now.digests else now


def older_lines(study: Study, folder: Path, since: str) -> list[Line]:
    """Lines of a study that were measured before a commit, or at one that is not known."""
    path = folder / f"{study.file}.json"
    runs: list[dict[str, Any]] = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    )
    current = {
        number
        for number, each in enumerate(runs)
        if not each["changed"] and comes_after(each["commit"], since)
    }
    lines = read(folder / f"{study.file}.jsonl")
    return [line for line in lines if line.get("run") not in current]


def comes_after(commit: str, since: str) -> bool:
    """Whether a commit is another one, or comes after it."""
    known = git("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}")
    return bool(known) and git("merge-base", since, commit) == known


def main(arguments: list[str] | None = None) -> int:
    """Name what is older, or measure it again."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("studies", nargs="*", help="default: all")
    parser.add_argument("--check", action="store_true", help="measure nothing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the results")
    given = parser.parse_args(arguments)
    for name in given.studies:
        if name not in registry.names():
            parser.error(
                f"{name} is not a study; those are {', '.join(registry.names())}"
            )
    noted = noted_answers(given.folder, answers_now())
    if not given.check:
        text = json.dumps(noted._asdict(), indent=1)
        (given.folder / NOTED).write_text(text + "\n", encoding="utf-8")
    found = 0
    for name in given.studies or registry.names():
        study = registry.study(name)
        older = older_lines(study, given.folder, noted.commit)
        if not older:
            continue
        found += 1
        print(f"{name}: {len(older)} lines are older than the default's answers")
        if not given.check:
            path = given.folder / f"{study.file}.jsonl"
            replace_lines(path, [line for line in read(path) if line not in older])
            run.run(study, ["--output", str(given.folder)])
    if not found:
        print(f"nothing is older than {noted.commit[:7]}, where the answers changed")
    return int(bool(found and given.check))


if __name__ == "__main__":
    sys.exit(main())
