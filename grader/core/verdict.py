"""What happened, as data: to one case, to one exercise, to a submission.

Reports render these; nothing here knows how.  The words of
:class:`Diagnosis` and the fields of the verdicts are the vocabulary that the
command line's JSON shares with other programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "Bound",
    "CaseVerdict",
    "Diagnosis",
    "ExerciseVerdict",
    "Failure",
    "RankRow",
    "Site",
    "Status",
    "SubmissionVerdict",
    "Traffic",
    "Volume",
    "Wait",
]


class Status(str, Enum):
    """How a case or an exercise ended."""

    PASSED = "passed"
    FAILED = "failed"
    #: It could not be judged here; the message says what is missing.
    SKIPPED = "skipped"
    #: The grader itself failed; never counted against the student.
    ERROR = "error"

    __str__ = str.__str__


class Diagnosis(str, Enum):
    """One word for what is wrong with an answer."""

    NOT_ATTEMPTED = "not_attempted"
    MISSING = "missing"
    SYNTAX_ERROR = "syntax_error"
    EXCEPTION = "exception"
    EXITED = "exited"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    DEADLOCK = "deadlock"
    WRONG_TYPE = "wrong_type"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUE = "wrong_value"
    INPUT_CHANGED = "input_changed"
    ALIASED = "aliased"
    FORBIDDEN_CALL = "forbidden_call"
    TOO_MANY_MESSAGES = "too_many_messages"
    TOO_FEW_MESSAGES = "too_few_messages"
    TOO_MANY_BYTES = "too_many_bytes"
    TOO_FEW_BYTES = "too_few_bytes"
    TOO_MANY_ROUNDS = "too_many_rounds"
    TOO_FEW_ROUNDS = "too_few_rounds"
    NOT_NEIGHBOUR = "not_neighbour"
    UNMATCHED_MESSAGE = "unmatched_message"
    SIZE_MISMATCH = "size_mismatch"
    DTYPE_MISMATCH = "dtype_mismatch"
    BUFFER_RACE = "buffer_race"
    UNWAITED_REQUEST = "unwaited_request"
    ORDER_MISMATCH = "order_mismatch"
    NONDETERMINISTIC = "nondeterministic"
    WRONG_GRADIENT = "wrong_gradient"
    NO_OVERLAP = "no_overlap"
    MEMORY_LIMIT = "memory_limit"
    OUTPUT_LIMIT = "output_limit"
    TAMPERING = "tampering"

    __str__ = str.__str__


@dataclass(frozen=True)
class Site:
    """A place in the student's source: the file or notebook cell, and the line."""

    file: str
    line: int

    def __str__(self) -> str:
        # A cell is part of the place ("cell 3, line 5"); the name of a file or
        # of IPython's temporary file for a live cell says nothing new.
        if self.file.startswith("cell "):
            return f"{self.file}, line {self.line}"
        return f"line {self.line}"


@dataclass(frozen=True)
class SourceLine:
    """A line of the student's source that a failure points at.

    Attributes:
        site: where it is.
        function: the function that was running there, in a traceback.
        text: the line itself; empty where nobody knows it.
        place: how a report calls the site, such as "In [3], line 2", where its line
            alone does not tell.
    """

    site: Site
    function: str = ""
    text: str = ""
    place: str = ""

    def __str__(self) -> str:
        where = self.place or str(self.site)
        if self.function:
            where += f", in {self.function}"
        return f"{where}:  {self.text}" if self.text else where


@dataclass(frozen=True)
class ArrivalOrders:
    """How many orders of arrival were tried, of those that are known to be possible.

    ``exhausted`` is whether no others are: where a choice has not been tried, more may
    follow from it.
    """

    tried: int
    known: int
    exhausted: bool

    def __add__(self, other: ArrivalOrders) -> ArrivalOrders:
        """Return the orders of two cases, taken together."""
        return ArrivalOrders(
            self.tried + other.tried,
            self.known + other.known,
            self.exhausted and other.exhausted,
        )

    def __str__(self) -> str:
        if self.exhausted:
            return f"all {self.tried} orders tried"
        return f"{self.tried} of {self.known} known orders tried"


@dataclass(frozen=True)
class Volume:
    """How much a run sent, point to point.

    Attributes:
        messages: messages sent, summed over ranks.
        bytes: bytes sent, summed over ranks.
        max_sent: the most bytes that any one rank sent.
    """

    messages: int = 0
    bytes: int = 0
    max_sent: int = 0


@dataclass(frozen=True)
class Traffic(Volume):
    """How much a run sent, and in how many rounds.

    Attributes:
        rounds: the makespan when every message takes one unit of time and
            every rank sends at most one and receives at most one at a time.
    """

    rounds: int = 0


@dataclass(frozen=True)
class Bound:
    """A measured number beside what the exercise asks of it.

    ``relation`` is ``"="``, ``"≤"`` or ``"≥"``: ``measured relation asked``
    should be true.
    """

    quantity: str
    measured: int
    relation: str
    asked: int

    @property
    def holds(self) -> bool:
        """Whether the measured number obeys the bound."""
        return {
            "=": self.measured == self.asked,
            "≤": self.measured <= self.asked,
            "≥": self.measured >= self.asked,
        }[self.relation]

    @property
    def asks(self) -> str:
        """What is asked, and whether it was met: "at most 4", "should be at most 4"."""
        words = {"=": "exactly", "≤": "at most", "≥": "at least"}
        return f"{'' if self.holds else 'should be '}{words[self.relation]} {self.asked}"

    @property
    def missed(self) -> str:
        """The same in a sentence: "2 rounds instead of 1"."""
        words = {"=": "", "≤": "at most ", "≥": "at least "}
        return f"{self.measured} {self.quantity} instead of {words[self.relation]}{self.asked}"

    def __str__(self) -> str:
        return f"{self.quantity}: {self.measured} ({self.asks})"


@dataclass(frozen=True)
class Wait:
    """An edge of the wait-for graph: a rank that cannot go on, and whom it waits for.

    ``text`` reads like "waits to send to rank 1 at line 5".  ``call`` is what it
    waits in: ``send``, ``recv``, or the name of a collective.  Of several peers
    it needs all, as in a collective, unless ``any_of`` them would do.
    """

    rank: int
    peers: tuple[int, ...]
    text: str
    site: Site | None = None
    call: str = ""
    any_of: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a run of ranks ended badly.

    Attributes:
        diagnosis: the word.
        message: one sentence, naming rank, line, what was expected and came.
        rank: the rank at fault, or ``None`` where no single one is.
        site: the place in the student's source, if one is known.
        detail: further lines, such as the cycle of a deadlock.
        frames: the student's part of a traceback, outermost call first; else the lines
            that the message names, once their source is known.
    """

    diagnosis: Diagnosis
    message: str
    rank: int | None = None
    site: Site | None = None
    detail: tuple[str, ...] = ()
    frames: tuple[SourceLine, ...] = ()
    #: of a deadlock: everyone who waits, the ranks of a cycle, if there is one,
    #: and those that others wait for although they have returned
    waits: tuple[Wait, ...] = ()
    cycle: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()


@dataclass(frozen=True)
class RankRow:
    """Expected and actual result of one rank, as short text, for a report."""

    rank: int
    expected: str
    actual: str
    right: bool


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
    detail: tuple[str, ...] = ()
    #: as in :class:`Failure`
    frames: tuple[SourceLine, ...] = ()
    #: what each rank printed, in rank order
    output: tuple[str, ...] = ()
    #: of a deadlock, as in :class:`Failure`
    waits: tuple[Wait, ...] = ()
    cycle: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    #: of receives from any rank: in how many orders they were matched; none if there is one only
    orders: ArrivalOrders | None = None
    #: whether its ranks were simulated
    simulated: bool = False
    #: whether it is a limit on the traffic of other cases, also where none could be judged
    is_limit: bool = False
    #: whether it shows that the answer misses the point of its exercise
    misses_point: bool = False

    @property
    def passed(self) -> bool:
        """Whether the case passed."""
        return self.status is Status.PASSED


@dataclass(frozen=True)
class ExerciseVerdict:
    """What happened to one exercise: its cases, its score, the first failure.

    ``score`` is what :mod:`grader.judge.judge` says.  ``message`` says what is wrong first;
    of an answer that passed, what there is to remark.  ``bool(verdict)`` is whether it passed.
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

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return self.status is Status.PASSED

    @property
    def first_failure(self) -> CaseVerdict | None:
        """The first case that did not pass, in the order they were run."""
        return next((case for case in self.cases if not case.passed), None)

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


def total(points: Iterable[float]) -> float:
    """The sum of points, rounded to the thousandth that reports show."""
    return round(sum(points), 3)
