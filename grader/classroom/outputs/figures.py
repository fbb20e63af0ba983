"""What the rows of a class say together: numbers and lists, before they are laid out."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.classroom.outputs.results import Asked, ClassResults, Row, Standing
from grader.core.verdict import Diagnosis, ExerciseVerdict, Status

__all__ = [
    "Bin",
    "Change",
    "Exercise",
    "Figures",
    "Found",
    "Mistake",
    "changes",
    "figures",
    "hung",
    "outcome",
]

#: Bars of the distribution.
_BINS = 10

#: Mistakes of an exercise that are named, and rows of the lists of the slowest.
_MOST, _SLOWEST = 3, 8

_HUNG = frozenset({Diagnosis.DEADLOCK, Diagnosis.TIMEOUT})
_EMPTY = frozenset({Diagnosis.NOT_ATTEMPTED, Diagnosis.MISSING})


@dataclass(frozen=True)
class Bin:
    """How many scores lie in a tenth of the range; the last one has both its ends."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Mistake:
    """A way in which an exercise was failed, and how many did."""

    diagnosis: str
    hint: str
    count: int


@dataclass(frozen=True)
class Exercise:
    """An exercise over the whole class.

    Attributes:
        judged: how many answers there were that could be judged.
        passed, partly, hung, failed, empty: they add up to that; ``partly`` has
            some points, ``empty`` was not attempted.
        unjudged: skipped, or the grader's own fault.
        median, longest: seconds that judging took.
    """

    asked: Asked
    judged: int
    passed: int
    partly: int
    hung: int
    failed: int
    empty: int
    unjudged: int
    mistakes: tuple[Mistake, ...]
    median: float
    longest: float

    @property
    def rate(self) -> float | None:
        """The share that passed."""
        return self.passed / self.judged if self.judged else None


@dataclass(frozen=True)
class Found:
    """An exercise of a submission."""

    row: Row
    verdict: ExerciseVerdict


@dataclass(frozen=True)
class Change:
    """What another grading said."""

    row: Row
    before: ExerciseVerdict
    now: ExerciseVerdict

    @property
    def points(self) -> float:
        """Points won, or lost."""
        return round(self.now.score - self.before.score, 3)


@dataclass(frozen=True)
class Figures:
    """A class in numbers and lists.

    Attributes:
        graded: rows with a final score.
        bins: the distribution of their scores.
        mean, median: of their scores; ``None`` if there are none.
        exercises: in the order of the course.
        faults: rows that the grader failed on as a whole.
        errors: exercises that it failed on; ``skipped`` could not be judged here.
        unsafe: rows graded without a sandbox.
        nothing: rows without an exercise.
        hung: exercises that ended in a deadlock or a timeout.
        slowest: exercises of one submission; ``longest``: submissions.
        changes: what differs from an earlier grading.
    """

    graded: tuple[Row, ...]
    bins: tuple[Bin, ...]
    mean: float | None
    median: float | None
    exercises: tuple[Exercise, ...]
    faults: tuple[Row, ...]
    errors: tuple[Found, ...]
    skipped: tuple[Found, ...]
    unsafe: tuple[Row, ...]
    nothing: tuple[Row, ...]
    hung: tuple[Found, ...]
    slowest: tuple[Found, ...]
    longest: tuple[Row, ...]
    changes: tuple[Change, ...]


def figures(results: ClassResults) -> Figures:
    """Look at all rows of a class."""
    rows = results.rows
    graded = tuple(row for row in rows if row.standing == Standing.GRADED)
    scores = [row.score for row in graded]
    found = [Found(row, verdict) for row in rows for verdict in row.exercises]
    answered = [f for f in found if f.verdict.seconds > 0]
    return Figures(
        graded=graded,
        bins=_bins([results.share(row) for row in graded]),
        mean=statistics.fmean(scores) if scores else None,
        median=statistics.median(scores) if scores else None,
        exercises=tuple(_exercise(asked, rows) for asked in results.asked),
        faults=tuple(row for row in rows if row.fault),
        errors=tuple(f for f in found if f.verdict.status is Status.ERROR),
        skipped=tuple(f for f in found if f.verdict.status is Status.SKIPPED),
        unsafe=tuple(row for row in rows if row.unsafe),
        nothing=tuple(row for row in rows if row.standing == Standing.NOTHING),
        hung=tuple(f for f in found if hung(f.verdict)),
        slowest=tuple(sorted(answered, key=lambda f: -f.verdict.seconds)[:_SLOWEST]),
        longest=tuple(sorted((r for r in rows if r.seconds), key=lambda r: -r.seconds)[:_SLOWEST]),
        changes=tuple(change for row in rows for change in changes(row)),
    )


def hung(verdict: ExerciseVerdict) -> bool:
    """Whether an answer waited for ever, or worked for too long."""
    return verdict.status is Status.FAILED and verdict.diagnosis in _HUNG


def outcome(verdict: ExerciseVerdict) -> str:
    """One word of what became of an exercise, the same on every page."""
    if verdict.status is not Status.FAILED:
        return str(verdict.status)
    if hung(verdict):
        return "hung"
    if verdict.diagnosis in _EMPTY:
        return "empty"
    return "partly" if verdict.score > 0 else "failed"


def changes(row: Row) -> list[Change]:
    """Where an earlier grading of a submission had come to something else."""
    found = []
    for now in row.exercises:
        before = row.earlier.get(now.name)
        if before is not None and _essence(before) != _essence(now):
            found.append(Change(row, before, now))
    return found


def _essence(verdict: ExerciseVerdict) -> tuple[object, ...]:
    return verdict.status, verdict.score, verdict.max_score, verdict.diagnosis


def _exercise(asked: Asked, rows: Iterable[Row]) -> Exercise:
    verdicts = [row.by_name[asked.name] for row in rows if asked.name in row.by_name]
    outcomes = Counter(map(outcome, verdicts))
    unjudged = outcomes["error"] + outcomes["skipped"]
    seconds = [v.seconds for v in verdicts if v.seconds > 0]
    return Exercise(
        asked=asked,
        judged=len(verdicts) - unjudged,
        passed=outcomes["passed"],
        partly=outcomes["partly"],
        hung=outcomes["hung"],
        failed=outcomes["failed"],
        empty=outcomes["empty"],
        unjudged=unjudged,
        mistakes=_mistakes(verdicts),
        median=statistics.median(seconds) if seconds else 0.0,
        longest=max(seconds, default=0.0),
    )


def _mistakes(verdicts: Iterable[ExerciseVerdict]) -> tuple[Mistake, ...]:
    """The most frequent first; a hint tells mistakes of one diagnosis apart."""
    counts: Counter[tuple[str, str]] = Counter(
        (str(v.diagnosis), "" if v.diagnosis in _EMPTY else v.hint)
        for v in verdicts
        if v.status is Status.FAILED
    )
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Mistake(*what, count) for what, count in ordered[:_MOST])


def _bins(shares: Sequence[float]) -> tuple[Bin, ...]:
    # a score of 0.7 of 1 belongs to the bin that begins there, whatever floats say
    counts = Counter(max(0, min(int(share * _BINS + 1e-9), _BINS - 1)) for share in shares)
    width = 100 // _BINS
    return tuple(Bin(i * width, (i + 1) * width, counts[i]) for i in range(_BINS))
