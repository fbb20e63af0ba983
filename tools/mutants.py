"""Mutation run: ``make mutants``.  Is every broken reference solution rejected?

Each solution is changed in one place at a time, and judged.  A mutant that
passes either does the same as the original, and is then listed with the reason
in ``tests/equivalent_mutants.json``, or it is a hole in the grader.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from grader.course.chapters import discover
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise
from grader.judge.judge import Judge, Settings
from grader.submission.submission import Submission
from headcount.launch.launchers import default_launcher
from tools.chapter import BEGIN, END
from tools.mutations import Mutant, mutants

ROOT = Path(__file__).resolve().parent.parent

EQUIVALENT = ROOT / "tests" / "equivalent_mutants.json"


@dataclass(frozen=True)
class Suspect:
    """A mutant of a chapter's source, and the exercises that could tell."""

    path: Path
    mutant: Mutant
    exercises: tuple[str, ...]

    @property
    def name(self) -> str:
        """The exercise, for the list; the chapter where it is in a helper of several."""
        return self.exercises[0] if len(self.exercises) == 1 else self.path.stem


def suspects(path: Path, exercises: Sequence[str], chosen: Sequence[str]) -> Iterator[Suspect]:
    """Yield every mutant of a chapter's solutions that one of the chosen exercises could tell.

    A change in the function of an exercise concerns that exercise; one in a helper, those whose
    functions use it.  What no exercise uses is practice, which is never judged.
    """
    text = path.read_text(encoding="utf-8")
    marked = _marked(text)
    kinds = (ast.FunctionDef, ast.ClassDef)
    tops = [node for node in ast.parse(text).body if isinstance(node, kinds)]
    uses = {name: _used_by(name, tops) for name in exercises}
    for mutant in mutants(text, marked.__contains__):
        home = next((t.name for t in tops if t.lineno <= mutant.line <= (t.end_lineno or 0)), "")
        concerned = [home] if home in exercises else [n for n in exercises if home in uses[n]]
        asked = tuple(name for name in concerned if name in chosen)
        if asked:
            yield Suspect(path, mutant, asked)


def _used_by(name: str, tops: Sequence[ast.FunctionDef | ast.ClassDef]) -> set[str]:
    """Return the names of a chapter's functions and classes that one of them reaches."""
    reached, left = set[str](), [name]
    while left:
        one = left.pop()
        if one not in reached:
            reached.add(one)
            bodies = [node for top in tops if top.name == one for node in ast.walk(top)]
            left += [node.id for node in bodies if isinstance(node, ast.Name)]
    return reached


def _marked(text: str) -> set[int]:
    """The lines between the markers of solutions."""
    inside, found = False, set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == BEGIN:
            inside = True
        elif line.strip() == END:
            inside = False
        elif inside:
            found.add(number)
    return found


def verdict_on(suspect: Suspect, catalogue: Catalogue[Exercise], seed: int) -> str | None:
    """The diagnosis that rejects a mutant; ``None`` if it passes."""
    judge = Judge(default_launcher(), Settings(seed, seconds=0.4, first_failure=True))
    data = suspect.mutant.source.encode()
    submission = Submission.from_bytes(data, suspect.path.name, catalogue)
    for name in suspect.exercises:
        verdict = judge.judge(catalogue[name], submission)
        if not verdict.passed:
            return str(verdict.diagnosis or verdict.status)
    return None


def equivalent(path: Path = EQUIVALENT) -> dict[tuple[str, str], str]:
    """Why known mutants do the same as the original, by exercise and change."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {(e["exercise"], e["change"]): e["reason"] for e in entries}


@dataclass
class Tally:
    """What became of the mutants of one exercise."""

    rejected: int = 0
    equivalent: int = 0
    survived: int = 0

    @property
    def made(self) -> int:
        """All of them."""
        return self.rejected + self.equivalent + self.survived


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the mutants; 0 if enough are rejected and all others explained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="exercises; all if none")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs")
    request = parser.parse_args(arguments)
    catalogue, console = discover(), Console(highlight=False)
    everyone = [
        suspect
        for chapter, exercises in catalogue.chapters().items()
        # to make the mutants of a chapter takes seconds, also where none is asked for
        if not request.names or {exercise.name for exercise in exercises} & set(request.names)
        for suspect in suspects(
            ROOT / "solutions" / f"{chapter}.py",
            [exercise.name for exercise in exercises],
            request.names or list(catalogue),
        )
    ]
    known = equivalent()
    started = time.monotonic()
    tallies: dict[str, Tally] = {}
    words: Counter[str] = Counter()
    complaints = []
    passed: set[tuple[str, str]] = set()
    rejected: dict[tuple[str, str], str] = {}
    for suspect in track(everyone, "mutants", console=console, disable=not console.is_terminal):
        tally = tallies.setdefault(suspect.name, Tally())
        diagnosis = verdict_on(suspect, catalogue, request.seed)
        change = suspect.name, suspect.mutant.change
        if diagnosis is not None:
            tally.rejected += 1
            words[diagnosis] += 1
            rejected[change] = diagnosis
            continue
        passed.add(change)
        if change in known:
            tally.equivalent += 1
        else:
            tally.survived += 1
            complaints.append(f"survives: {suspect.name}: {suspect.mutant.change}")
    complaints += [
        f"said to be equivalent, but rejected as {diagnosis}: {name}: {change}"
        for (name, change), diagnosis in rejected.items()
        # the same line may stand at two places, and its change matter at one
        if (name, change) in known and (name, change) not in passed
    ]
    _print(console, tallies, complaints, words)
    console.print(f"{(time.monotonic() - started) / 60:.1f} min")
    return 1 if complaints else 0


def _print(
    console: Console, tallies: dict[str, Tally], complaints: list[str], words: Counter[str]
) -> None:
    table = Table(box=None)
    table.add_column("exercise")
    for heading in ("mutants", "rejected", "equivalent", "survive"):
        table.add_column(heading, justify="right")
    for name, tally in tallies.items():
        counts = (tally.made, tally.rejected, tally.equivalent, tally.survived)
        table.add_row(name, *map(str, counts))
    console.print(table)
    for complaint in complaints:
        console.print(complaint, markup=False, soft_wrap=True)
    console.print(", ".join(f"{word} {count}" for word, count in words.most_common()))
    rejected = sum(tally.rejected for tally in tallies.values())
    changing = rejected + sum(tally.survived for tally in tallies.values())
    share = 100 * rejected / changing if changing else 100.0
    console.print(f"{rejected} of {changing} mutants that change something: {share:.1f} %")


if __name__ == "__main__":
    sys.exit(main())
