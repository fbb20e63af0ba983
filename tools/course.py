"""Proves the course both ways: ``make check``.

Every solution earns full marks and every stub is ``not_attempted``; every
right answer passes, and every wrong one gets the diagnosis that its header names, and the
hint that is its docstring or has the words of its header, and earns no more than that says.
With ``--repeat`` the whole is done again and again, and a verdict that differs is an error.

With ``--simulated`` every known answer is judged on real ranks and on simulated ones, and each
verdict that differs is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from grader.api import fresh_seed
from grader.course.answers import FOLDER
from grader.course.chapters import discover
from grader.exercise.answers import RIGHT, KnownAnswer, read_answers
from grader.exercise.cases import PerRank
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise
from grader.exercise.verdict import ExerciseVerdict
from grader.judge.judge import Judge, Settings
from grader.judge.world_factories import SimulationWorldFactory
from grader.submission.submission import Submission
from headcount.core.errors import HeadcountError, RequestError
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Answer:
    """A form of an answer whose verdict is known, as it is handed in for one exercise.

    Attributes:
        known: the answer.
        exercise: one that it answers.
        form: which of its forms this is.
    """

    known: KnownAnswer
    exercise: str
    form: int = 0

    @property
    def name(self) -> str:
        """Its path, exercise and form, as ``grader/course/answers/…/sum.py::all_reduce::0``."""
        return f"{self.known.path.relative_to(ROOT)}::{self.exercise}::{self.form}"

    @property
    def chapter(self) -> str:
        """The chapter whose folder it lies in."""
        return self.known.path.relative_to(FOLDER).parts[0]

    @property
    def source(self) -> str:
        """What is judged: its text, after the chapter that it stands on."""
        own, on = self.known.sources[self.form], self.known.on
        return f"{solved(on)}\n\n{own}" if on else own

    def complaint(self, verdict: ExerciseVerdict, specific: Collection[str] = ()) -> str:
        """What is wrong with a verdict on this answer; empty if nothing is.

        Args:
            verdict: the verdict.
            specific: the hints of the exercise that name a mistake.
        """
        known = self.known
        if known.diagnosis is None:
            return "" if verdict.passed else f"should pass, but: {verdict.message}"
        if verdict.diagnosis != known.diagnosis:
            got = verdict.diagnosis or "a pass"
            return f"should be {known.diagnosis}, but is {got}: {verdict.message}"
        if verdict.score >= verdict.max_score:
            return "earns full marks"
        if known.earns is not None and verdict.score > known.earns * verdict.max_score + 0.001:
            return f"should earn at most {known.earns:g} of its points, but earns {verdict.score:g}"
        failure = verdict.gravest_failure
        texts = [verdict.message, *(failure.detail if failure else ())]
        if not any(known.says in text for text in texts):
            return f"message should say {known.says!r}, but says: {verdict.message}"
        if known.hint == "-":
            if verdict.hint in specific:
                return f"should get no specific hint, but gets: {verdict.hint}"
        elif known.hint not in verdict.hint or (known.speaks and known.hint != verdict.hint):
            return f"hint should say {known.hint!r}, but says: {verdict.hint}"
        for words in known.banned:
            told = next((t for t in (*texts, verdict.hint) if words in t), None)
            if told is not None:
                return f"should not say {words!r}, but says: {told}"
        return ""


def solved(chapter: str) -> str:
    """The source of a chapter's solved edition."""
    return (ROOT / "solutions" / f"{chapter}.py").read_text(encoding="utf-8")


def answers(folder: Path = FOLDER) -> list[Answer]:
    """All known answers, in every form of each, for every exercise that it answers."""
    chapters = sorted(folder.glob("[0-9]*"))
    return [
        Answer(known, exercise, form)
        for below in chain(chapters, (chapter / RIGHT for chapter in chapters))
        for known in read_answers(below)
        for exercise in known.exercises
        for form in range(len(known.sources))
    ]


def specific(exercise: Exercise) -> list[str]:
    """The hints of an exercise that name a mistake."""
    known = [mistake.hint for mistake in exercise.mistakes]
    return known + [one.hint for one in exercise.programs()]


def judge_answer(
    answer: Answer, catalogue: Catalogue[Exercise], seed: int, simulated: bool = False
) -> ExerciseVerdict:
    """The verdict on an answer.

    Args:
        answer: the answer.
        catalogue: has its exercise.
        seed: the seed of the inputs.
        simulated: whether the ranks are simulated in all cases; an exercise that kills, delays or
            pauses ranks, or calls C++, is skipped then.
    """
    # a wrong answer is judged as far as its hint depends on it; each further failure
    # would cost a new world
    known = answer.known
    settings = Settings(seed, until_hint=known.diagnosis is not None and known.earns is None)
    submission = Submission.from_bytes(answer.source.encode(), str(known.path), catalogue)
    worlds = SimulationWorldFactory() if simulated else None
    judge = Judge(default_launcher(), settings, worlds)
    return judge.judge(catalogue[answer.exercise], submission)


def difference(real: ExerciseVerdict, simulated: ExerciseVerdict) -> str:
    """What differs between the verdicts on an answer on real and on simulated ranks, if anything.

    These are the diagnosis, the status, the hint, the score and the message; seconds, traffic and
    the verdicts on single cases may differ.
    """

    names = ("diagnosis", "status", "hint", "score", "message")
    pairs = ((name, getattr(real, name), getattr(simulated, name)) for name in names)
    return "; ".join(f"{name} {str(a)!r} and {str(b)!r}" for name, a, b in pairs if a != b)


@dataclass(frozen=True)
class Claim:
    """Something that must hold of the course, and how to find out."""

    what: str
    path: Path
    exercise: str
    answer: Answer | None = None
    solved: bool = True

    def complaint(self, catalogue: Catalogue[Exercise], seed: int) -> tuple[str, ExerciseVerdict]:
        """Why it does not hold; empty if it does."""
        if self.answer is not None:
            verdict = judge_answer(self.answer, catalogue, seed)
            return self.answer.complaint(verdict, specific(catalogue[self.exercise])), verdict
        judge = Judge(default_launcher(), Settings(seed))
        submission = Submission.from_file(self.path, catalogue)
        verdict = judge.judge(catalogue[self.exercise], submission)
        if self.solved:
            return ("" if verdict.passed else f"should pass: {verdict.message}"), verdict
        untouched = verdict.diagnosis is Diagnosis.NOT_ATTEMPTED and verdict.score == 0
        got = verdict.diagnosis or "a pass"
        return ("" if untouched else f"should be not_attempted, but is {got}"), verdict


def claims(catalogue: Catalogue[Exercise], root: Path) -> Iterator[Claim]:
    """Everything that must hold."""
    for name, exercise in catalogue.items():
        chapter = exercise.chapter
        for suffix in (".py", ".ipynb"):
            yield Claim("solution", root / "solutions" / f"{chapter}{suffix}", name)
        yield Claim("stub", root / "notebooks" / f"{chapter}.ipynb", name, solved=False)
    for answer in answers():
        yield Claim("answer", answer.known.path, answer.exercise, answer)


#: Exercises whose inputs have one shape, which their statement names: factors, which have two or
#: three dimensions, what is cut along the second, and a loss, which is a single number.
_ONE_SHAPE = {
    *("column_parallel", "row_parallel", "sequence_shard", "sequence_unshard"),
    *("parallel_mlp", "vocab_parallel_cross_entropy", "gather_matmul"),
    *("ring_attention", "ulysses_attention", "sync_parameters"),
}

#: What dtypes there have to be among the tensors; of an exercise by name, if it asks for others.
_DTYPES = {
    "": (torch.float32, torch.float64, torch.int64),
    "quantized_all_reduce": (torch.float32,),
}


def lacking_inputs(exercise: Exercise) -> Iterator[str]:
    """Yield what the inputs of an exercise lack: without it, an answer that is wrong may pass."""
    for n in exercise.world_sizes:
        cases = exercise.cases(1, n)
        for name, times in Counter(case.name for case in cases).items():
            if times > 1:
                yield f"{times} cases on {n} ranks are named {name!r}"
        for case in cases:
            given = [column for column in case.columns.values() if isinstance(column, PerRank)]
            if any(len(one) != n for one in (*given, exercise.values.expected(case))):
                yield f"{case.name!r} on {n} ranks does not have a value for each rank"
        roots = {case.columns.get("src", case.columns.get("dst")) for case in cases}
        if n > 1 and roots == {0}:
            yield f"on {n} ranks the root is always rank 0"
    columns = [column for case in exercise.cases(1, 4) for column in case.columns.values()]
    values = [value for column in columns if isinstance(column, PerRank) for value in column]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    if exercise.name in _ONE_SHAPE or not any(tensor.dim() for tensor in tensors):
        return
    wanted = _DTYPES.get(exercise.name, _DTYPES[""])
    yield from (f"no {dtype}" for dtype in wanted if dtype not in {t.dtype for t in tensors})
    dimensions, sizes = {t.dim() for t in tensors}, {t.numel() for t in tensors}
    yield from (f"no tensor of {one} dimensions" for one in (1, 2) if one not in dimensions)
    if 0 not in sizes:
        yield "no tensor without elements"
    if not sizes & {1, 2, 3}:
        yield "no tensor of one to three elements"


def compare(answers: Sequence[Answer], catalogue: Catalogue[Exercise], seed: int) -> int:
    """Judge answers on real ranks and on simulated ones; return how many verdicts differ."""
    differ, seconds = 0, {False: 0.0, True: 0.0}
    for answer in answers:
        verdicts = []
        for simulated in seconds:
            started = time.monotonic()
            verdicts.append(judge_answer(answer, catalogue, seed, simulated))
            seconds[simulated] += time.monotonic() - started
        found = difference(*verdicts)
        differ += bool(found)
        if found:
            print(f"{answer.name}: {found}", flush=True)
    rates = [len(answers) / max(spent, 1e-9) for spent in seconds.values()]
    print(
        f"{len(answers)} answers, seed {seed}: {differ} verdicts differ;"
        f" {rates[0]:.1f} answers/s on real ranks, {rates[1]:.1f} on simulated ones"
    )
    return differ


def main(arguments: Sequence[str] | None = None) -> int:
    """Check every claim; 0 if all hold, 2 if there is nothing that could be judged."""
    try:
        return _prove(arguments)
    except HeadcountError as error:
        print(error, file=sys.stderr)
        return 2


def _prove(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="exercises; all if none")
    parser.add_argument("--repeat", type=int, default=1, help="how often")
    parser.add_argument("--seed", type=int, help="the same inputs every time")
    parser.add_argument(
        "--simulated", action="store_true", help="compare verdicts on real and simulated ranks"
    )
    request = parser.parse_args(arguments)
    catalogue, console = discover(), Console(stderr=True, highlight=False)
    names = {catalogue[name].name for name in request.names or catalogue}
    chosen = [claim for claim in claims(catalogue, ROOT) if claim.exercise in names]
    if request.simulated:
        seed = fresh_seed() if request.seed is None else request.seed
        known = [claim.answer for claim in chosen if claim.answer is not None]
        return 1 if compare(known, catalogue, seed) else 0
    for claim in chosen:
        if not claim.path.exists():
            chapter = claim.path.stem
            raise RequestError(f"{chapter} is not built yet: make notebooks ARGS={chapter[:2]}")
    complaints = 0
    for name in sorted(names):
        for lacking in lacking_inputs(catalogue[name]):
            complaints += 1
            print(f"inputs of {name}: {lacking}")
    first: dict[Path, tuple[object, str]] = {}
    started = time.monotonic()
    for turn in range(request.repeat):
        seed = fresh_seed() if request.seed is None else request.seed
        title = f"turn {turn + 1} of {request.repeat}, seed {seed}"
        for claim in track(chosen, title, console=console, disable=not console.is_terminal):
            complaint, verdict = claim.complaint(catalogue, seed)
            key = claim.path / claim.exercise
            outcome = (verdict.diagnosis, verdict.hint)
            if not complaint and first.setdefault(key, outcome) != outcome:
                complaint = f"differs from the first time: {outcome} and not {first[key]}"
            if complaint:
                complaints += 1
                path = claim.path.relative_to(ROOT)
                print(f"{claim.what} {path}, {claim.exercise}, seed {seed}: {complaint}")
        minutes = (time.monotonic() - started) / 60
        if request.repeat > 1:
            print(f"{title}: {complaints} wrong so far, {minutes:.1f} min", flush=True)
    print(f"{len(chosen)} claims, {request.repeat} times: {complaints} wrong, {minutes:.1f} min")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
