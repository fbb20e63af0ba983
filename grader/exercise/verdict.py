"""What happened to a case, to an exercise and to a submission, as data.

Reports render these; nothing here knows how.  The fields of the verdicts are the vocabulary that
the command line's JSON shares with other programs; the words of a diagnosis are those of
:class:`headcount.core.verdict.Diagnosis`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeVar

from headcount.core.verdict import (
    ArrivalOrders,
    Diagnosis,
    Grade,
    Gravity,
    Site,
    SourceLine,
    Traffic,
    Wait,
    duration,
)

__all__ = [
    "Bound",
    "CaseVerdict",
    "Comparison",
    "ExerciseVerdict",
    "Grade",
    "HINT_LABELS",
    "Hint",
    "RankRow",
    "Status",
    "SubmissionVerdict",
    "Way",
    "gravest",
    "listed",
    "total",
]


class Status(str, Enum):
    """How a case or an exercise ended."""

    PASSED = "passed"
    FAILED = "failed"
    #: It could not be judged here; the message says what is missing.
    SKIPPED = "skipped"
    #: The judge itself failed; never counted against the student.
    ERROR = "error"

    __str__ = str.__str__


#: What stands before a hint: it follows from what the answer has done or from its source; a program
#: with this mistake does the same; it is asked of everybody whose answer fails so.
HINT_LABELS = {
    Grade.ESTABLISHED: "hint",
    Grade.SUPPORTED: "likely",
    Grade.OPEN: "in general",
}


@dataclass(frozen=True)
class Hint:
    """A hint in a verdict, and how well it is known."""

    text: str = ""
    grade: Grade = Grade.OPEN

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True)
class Bound:
    """A measured number beside what the exercise asks of it.

    ``relation`` is ``"="``, ``"≤"`` or ``"≥"``: ``measured relation asked``
    should be true.  Both numbers are counts, or both are seconds.
    """

    quantity: str
    measured: int | float
    relation: str
    asked: int | float

    @property
    def holds(self) -> bool:
        """Whether the measured number obeys the bound."""
        return {
            "=": self.measured == self.asked,
            "≤": self.measured <= self.asked,
            "≥": self.measured >= self.asked,
        }[self.relation]

    @property
    def counted(self) -> str:
        """The measured number with what it counts: "7 messages", "2.5 ms of virtual time"."""
        if isinstance(self.measured, float):
            return f"{_number(self.measured)} of {self.quantity}"
        noun, blank, rest = self.quantity.partition(" ")
        noun = noun.removesuffix("s") if self.measured == 1 else noun
        return f"{_number(self.measured)} {noun}{blank}{rest}"

    @property
    def requirement(self) -> str:
        """What is asked, and whether it was met: "at most 4", "should be at most 4"."""
        words = {"=": "exactly", "≤": "at most", "≥": "at least"}
        return f"{'' if self.holds else 'should be '}{words[self.relation]} {_number(self.asked)}"

    @property
    def missed(self) -> str:
        """The same in a sentence: "2 rounds instead of 1"."""
        words = {"=": "", "≤": "at most ", "≥": "at least "}
        return f"{self.counted} instead of {words[self.relation]}{_number(self.asked)}"

    def __str__(self) -> str:
        return f"{self.quantity}: {_number(self.measured)} ({self.requirement})"


def _number(value: float) -> str:
    """Return a count in full, and seconds to a nanosecond, in a unit that suits them."""
    return f"{value:,}" if isinstance(value, int) else duration(value, digits=9)


@dataclass(frozen=True)
class RankRow:
    """Expected and actual result of one rank, as short text, for a report.

    Attributes:
        rank: the rank.
        expected: what it should hold; where that is long, the part around the first difference.
        actual: what it holds, cut in the same place.
        right: whether that is right.
        wrong: the stretches of ``actual`` that are wrong, as (start, end).
        note: which elements are wrong, or what kind of thing it is instead: "all three",
            "element 1", "a list, should be a tensor".
    """

    rank: int
    expected: str
    actual: str
    right: bool
    wrong: tuple[tuple[int, int], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class CaseVerdict:
    """What happened to one case: one input on one world of ranks.

    A limit on traffic is a case of its own, with ``bounds`` filled in.
    """

    name: str
    world_size: int
    status: Status
    diagnosis: Diagnosis | None = None
    message: str = ""
    rank: int | None = None
    site: Site | None = None
    traffic: Traffic | None = None
    bounds: tuple[Bound, ...] = ()
    by_rank: tuple[RankRow, ...] = ()
    #: the part of the message that ``by_rank`` shows at a glance
    shown_by_rank: str = ""
    detail: tuple[str, ...] = ()
    #: as in :class:`Failure`
    frames: tuple[SourceLine, ...] = ()
    #: what each rank printed, in rank order
    output: tuple[str, ...] = ()
    #: of a deadlock, as in :class:`Failure`
    waits: tuple[Wait, ...] = ()
    cycle: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    #: of receives from any rank: in how many orders they were matched; none if there is one only
    orders: ArrivalOrders | None = None
    #: whether its ranks were simulated
    simulated: bool = False
    #: whether it is a limit on the traffic of other cases, also where none could be judged
    is_limit: bool = False
    #: whether it shows that the answer misses the point of its exercise
    misses_point: bool = False
    #: whether it was judged, and not given up because of another case; the message says why
    judged: bool = True
    #: the call of a function on one rank with its inputs, where they are short
    call: str = ""
    #: whether the algorithm may be right all the same, see :func:`gravest`
    minor: bool = False

    @property
    def passed(self) -> bool:
        """Whether the case passed."""
        return self.status is Status.PASSED

    @property
    def gravity(self) -> int:
        """How grave its failure is; 0 if it passed, or was not run and so tells nothing itself."""
        if self.passed or not self.judged:
            return 0
        return self.diagnosis.gravity if self.diagnosis else Gravity.WRONG

    @property
    def final(self) -> bool:
        """Whether no further case can matter, see :class:`Diagnosis`."""
        return self.diagnosis is not None and self.diagnosis.final

    @property
    def may_be_right(self) -> bool:
        """Whether it says nothing against the values of an answer.

        On many simulated ranks nothing is run once a limit has been missed.
        """
        return self.passed or self.is_limit or (self.simulated and not self.judged)


class Graded(Protocol):
    """What :func:`gravest` asks of a case; see :class:`CaseVerdict`."""

    @property
    def passed(self) -> bool: ...
    @property
    def diagnosis(self) -> Diagnosis | None: ...
    @property
    def gravity(self) -> int: ...
    @property
    def misses_point(self) -> bool: ...
    @property
    def minor(self) -> bool: ...


_Graded = TypeVar("_Graded", bound=Graded)


def gravest(cases: Iterable[_Graded]) -> _Graded | None:
    """Return the failure that leads a verdict: the gravest, and of equally grave ones the first.

    Where only other reductions than the sum are wrong, and perhaps the last bits, values say little
    against the algorithm.  If such an answer misses the point of its exercise, that leads: it is
    what there is to learn, and with another algorithm the rest is written anew.
    """
    failed = [case for case in cases if not case.passed]
    wrong = [case for case in failed if case.gravity > Gravity.COSTLY]
    missed = next((case for case in failed if case.misses_point), None)
    reductions = any(case.diagnosis is Diagnosis.WRONG_VALUE for case in wrong)
    if missed is not None and reductions and all(case.minor for case in wrong):
        return missed

    def order(case: _Graded) -> tuple[int, bool]:
        # bits that differ say less than values that are wrong
        return case.gravity, case.diagnosis is not Diagnosis.NONDETERMINISTIC

    return max(failed, key=order, default=None)


@dataclass(frozen=True)
class Way:
    """What one way to solve an exercise costs; None where nothing is known.

    Attributes:
        name: the way in a few words.
        messages: the messages of all ranks.
        max_sent: bytes that the rank sends that sends most.
        rounds: the rounds, as in :mod:`headcount.trace.trace`.
        seconds: virtual seconds, as there.
    """

    name: str
    messages: int | None = None
    max_sent: int | None = None
    rounds: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A case of an exercise, and what several ways cost there.

    Attributes:
        case: the name of the case.
        world_size: the number of ranks.
        ways: measured ones, from the plainest; the last one is a lower bound of each number by
            itself.
    """

    case: str
    world_size: int
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class Question:
    """A question to the author of an answer, with its one answer."""

    kind: str
    text: str
    answer: str


@dataclass(frozen=True)
class QuestionedRun:
    """A run of an answer, and what can be asked about it.

    Attributes:
        case, ranks: the name of its case, and the number of its ranks.
        inputs: the arguments that take few words: ``src: 3``.
        ending: how it ended, if not well.
        code: its functions: the file or cell, the number of the first line, the text.
        questions: what the run answers.
    """

    case: str
    ranks: int
    inputs: tuple[str, ...]
    ending: str
    code: tuple[tuple[str, int, str], ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class ExerciseVerdict:
    """What happened to one exercise: its cases, its score, the gravest failure.

    ``score`` is what the judge says.  ``message`` says what is wrong first;
    of an answer that passed, what there is to remark.  ``others`` is what an answer that passed is
    compared with, if there is anything.  ``bool(verdict)`` is whether it passed.
    """

    name: str
    chapter: str
    status: Status
    score: float
    max_score: float
    diagnosis: Diagnosis | None = None
    message: str = ""
    hint: str = ""
    seconds: float = 0.0
    seed: int = 0
    cases: tuple[CaseVerdict, ...] = ()
    others: Comparison | None = None
    hint_grade: Grade = Grade.OPEN
    #: where that was asked for, a run to question the author about
    questioned: QuestionedRun | None = None

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return self.status is Status.PASSED

    @property
    def nothing_done(self) -> bool:
        """Whether there is no work of a learner's to judge, see :class:`Diagnosis`."""
        return self.diagnosis is not None and self.diagnosis.nothing_done

    @property
    def gravest_failure(self) -> CaseVerdict | None:
        """The case that leads the verdict; None if all passed."""
        return gravest(self.cases)

    @property
    def only_misses_point(self) -> bool:
        """Whether its values are right, and it earns half since it misses the exercise's point."""
        return (
            2 * self.score == self.max_score
            and any(case.misses_point for case in self.cases)
            and all(case.may_be_right for case in self.cases)
        )

    def __bool__(self) -> bool:
        return self.passed


@dataclass(frozen=True)
class SubmissionVerdict:
    """What happened to every exercise that was judged of one submission."""

    submission: str
    seed: int
    exercises: tuple[ExerciseVerdict, ...] = field(default_factory=tuple)
    backend: str = "gloo"

    @property
    def score(self) -> float:
        """Points earned."""
        return total(exercise.score for exercise in self.exercises)

    @property
    def max_score(self) -> float:
        """Points that could be earned; what could not be judged does not count."""
        return total(
            exercise.max_score
            for exercise in self.exercises
            if exercise.status is not Status.SKIPPED
        )

    @property
    def passed(self) -> bool:
        """Whether nothing failed; skipped exercises do not fail."""
        return all(e.status in (Status.PASSED, Status.SKIPPED) for e in self.exercises)


def listed(items: Iterable[object]) -> str:
    """Return items as in ``1, 2 and 3``."""
    *most, last = map(str, items)
    return f"{', '.join(most)} and {last}" if most else last


def total(points: Iterable[float]) -> float:
    """The sum of points, rounded to the thousandth that reports show."""
    return round(sum(points), 3)
