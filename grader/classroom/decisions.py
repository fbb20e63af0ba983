"""What a person decides about a grade, beside what the grader judges.

A decision is points for an exercise, an extension, or an excuse.  Each is kept with who made it,
when and why, in a table of its own in ``grades.sqlite`` that no grading writes.  Nothing is ever
deleted from it: a later decision on the same thing replaces an earlier one, and one that is
undone stays in the list with the name of who undid it.

A decision names a student by the key of the submission, which stays the same when the student
hands in again.  One that is made before the student has handed in anything, such as an
extension, names the student by number or name, and counts as soon as one submission fits.
"""

from __future__ import annotations

import difflib
import enum
import getpass
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timezone
from typing import Protocol, TypeVar

from grader.classroom.assignment import Assignment
from grader.classroom.names import few, first_last, folded, is_key
from headcount.core.errors import RequestError


class DecisionKind(enum.Enum):
    """The kinds of decisions, by the words that the table keeps."""

    POINTS = "points"
    EXTENSION = "extension"
    EXCUSE = "excuse"


@dataclass(frozen=True)
class Decision:
    """One decision.

    Attributes:
        kind: what is decided.
        student: the key of the submission, or a number or name where nothing was handed in yet.
        exercise: the exercise, or an empty string if it is about the whole assignment.
        why: the reason, in the words of who decided.
        by: who decided.
        at: when, as ISO 8601 text.
        points: the points that the exercise earns, in a decision on points.
        of: the points that it was worth then.
        judged: the points that the grader had found then; ``None`` if it had found none.
        until: the day or time by which the student may hand in, in an extension.
        undone_at: when it was undone, or an empty string while it holds.
        undone_by: who undid it.
        undone_why: the reason for that, if one was given.
        number: its number in the list of decisions; 0 before it is kept.
    """

    kind: DecisionKind
    student: str
    exercise: str
    why: str
    by: str
    at: str
    points: float | None = None
    of: float | None = None
    judged: float | None = None
    until: str = ""
    undone_at: str = ""
    undone_by: str = ""
    undone_why: str = ""
    number: int = 0

    def points_of(self, most: float) -> float:
        """Return the points it gives for an exercise that is worth ``most`` now."""
        assert self.points is not None
        return self.points * most / self.of if self.of else self.points

    @property
    def what(self) -> str:
        """What is decided, such as ``broadcast: 0.8 of 1 by hand``."""
        if self.kind is DecisionKind.EXTENSION:
            return f"may hand in until {self.until}"
        if self.kind is DecisionKind.EXCUSE:
            return f"excused from {self.exercise}" if self.exercise else "excused"
        return f"{self.exercise}: {self.points:g} of {self.of:g} by hand"

    def words(self, judged: float | None) -> str:
        """Return a sentence for everybody: what is decided, by whom, when, why, what was judged.

        Args:
            judged: the points that the grader has found now, if any.
        """
        text = f"{self.what}, decided by {self.by} on {self.at[:10]}: {self.why}"
        if self.kind is not DecisionKind.POINTS:
            return text
        if _rounded(self.judged) == _rounded(judged):
            return f"{text} (judged: {_points(judged)})"
        return (
            f"{text} (decided by hand when the judged score was {_points(self.judged)}; it is"
            f" {_points(judged)} now)"
        )


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 3)


def _points(score: float | None) -> str:
    return "none" if score is None else f"{round(score, 3):.10g}"


def now() -> str:
    """Return the present moment as ISO 8601 text, in UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def login_name() -> str:
    """Return the name of the user who runs this process.

    Raises:
        RequestError: the system has no name for them.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        raise RequestError(
            "the system does not say who you are; name who decides: --by NAME"
        ) from None


# The table. -----------------------------------------------------------------------

_COLUMNS = tuple(column.name for column in fields(Decision))

_TABLE = """
CREATE TABLE IF NOT EXISTS decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL, student TEXT NOT NULL, exercise TEXT NOT NULL,
    why TEXT NOT NULL, by TEXT NOT NULL, at TEXT NOT NULL,
    points REAL, of REAL, judged REAL, until TEXT NOT NULL,
    undone_at TEXT NOT NULL, undone_by TEXT NOT NULL, undone_why TEXT NOT NULL
)
"""


class DecisionTable:
    """The decisions of a class in its store, the oldest first.

    Args:
        database: the open database.
        transaction: makes a context that commits what is written in it, or nothing of it.
        problems: makes a context that raises SQLite's errors as those of the store.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        transaction: Callable[[], AbstractContextManager[None]],
        problems: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._database = database
        self._transaction = transaction
        self._problems = problems

    def all(self) -> list[Decision]:
        """Return every decision, also those that were replaced or undone."""
        with self._problems():
            known = self._database.execute(
                "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'decisions'"
            )
            if known.fetchone() is None:
                return []  # of a store in which nothing has been decided
            rows = self._database.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM decisions ORDER BY number"
            ).fetchall()
        found = [Decision(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]
        return [replace(one, kind=DecisionKind(one.kind)) for one in found]

    def add(self, decision: Decision) -> Decision:
        """Keep a decision, and return it with its number."""
        values = {name: getattr(decision, name) for name in _COLUMNS if name != "number"}
        values["kind"] = decision.kind.value
        with self._problems(), self._transaction():
            self._database.execute(_TABLE)
            cursor = self._database.execute(
                f"INSERT INTO decisions ({', '.join(values)})"
                f" VALUES ({', '.join('?' * len(values))})",
                tuple(values.values()),
            )
        return replace(decision, number=cursor.lastrowid or 0)

    def undo(self, number: int, by: str, why: str = "") -> Decision:
        """Undo a decision, and return it.

        Raises:
            RequestError: there is no such decision, or it has been undone already.
        """
        known = {one.number: one for one in self.all()}
        if number not in known:
            numbers = f"; their numbers are 1 to {max(known)}" if known else "; there are none"
            raise RequestError(f"there is no decision {number}{numbers}")
        if known[number].undone_at:
            raise RequestError(
                f"decision {number} was undone by {known[number].undone_by} on"
                f" {known[number].undone_at} already"
            )
        undone = replace(known[number], undone_at=now(), undone_by=by, undone_why=why)
        with self._problems(), self._transaction():
            self._database.execute(
                "UPDATE decisions SET undone_at = ?, undone_by = ?, undone_why = ?"
                " WHERE number = ?",
                (undone.undone_at, undone.undone_by, undone.undone_why, number),
            )
        return undone


# Whose they are, and which of them hold. ------------------------------------------


class Student(Protocol):
    """A submission as far as it says whose it is."""

    @property
    def key(self) -> str:
        """Its key."""

    @property
    def student(self) -> str:
        """The student's name."""

    @property
    def email(self) -> str | None:
        """The student's address."""

    @property
    def number(self) -> str | None:
        """The student's number or login."""

    @property
    def numbers(self) -> Sequence[tuple[str, str]]:
        """Whatever else tells who it is, each with its kind."""


def names_of(one: Student) -> tuple[str | None, ...]:
    """Return whatever a student may be called by."""
    return one.key, one.student, one.number, one.email, *(number for number, _ in one.numbers)


_Somebody = TypeVar("_Somebody", bound=Student)


def find_student(reference: str, students: Sequence[_Somebody]) -> _Somebody | None:
    """Return the student whom a key, number, address or name means, or ``None`` if nobody fits.

    The whole of each is tried in this order, then some words of a name.

    Raises:
        RequestError: several students fit.
    """
    wanted = folded(reference)
    words = set(wanted.split())
    ways: tuple[Callable[[_Somebody], bool], ...] = (
        lambda one: one.key == reference,
        lambda one: folded(one.number or "") == wanted,
        lambda one: wanted in {folded(one.email or ""), *(folded(own) for own, _ in one.numbers)},
        lambda one: wanted in (folded(one.student), first_last(one.student)),
        lambda one: words <= set(first_last(one.student).split()),
    )
    for fits in ways if wanted else ():
        found = [one for one in students if fits(one)]
        if len(found) == 1:
            return found[0]
        if found:
            listed = few([f"{one.student} ({one.key})" for one in found], _LISTED)
            raise RequestError(
                f"{reference!r} fits {len(found)} students: {listed}; name one by the key in"
                " brackets"
            )
    return None


#: Students that a message lists.
_LISTED = 5


def nobody(reference: str, students: Sequence[Student], where: str) -> str:
    """Return the sentence that nobody in a place is meant by a reference, and who is near."""
    names = {name: one for one in students for name in (first_last(one.student), one.key)}
    near = difflib.get_close_matches(folded(reference), names, n=_LISTED, cutoff=0.5)
    found = list(dict.fromkeys(f"{names[name].student} ({names[name].key})" for name in near))
    mend = f"; did you mean {' or '.join(found[:3])}?" if found else ""
    return f"there is no student {reference!r} in {where}{mend}"


@dataclass(frozen=True)
class StudentDecisions:
    """The decisions that hold for one student.

    Attributes:
        points: decisions on points, by exercise.
        excuses: excuses from single exercises, by exercise.
        excuse: the excuse from the whole assignment.
        extension: the extension.
    """

    points: Mapping[str, Decision] = field(default_factory=dict)
    excuses: Mapping[str, Decision] = field(default_factory=dict)
    excuse: Decision | None = None
    extension: Decision | None = None

    def __bool__(self) -> bool:
        return bool(self.points or self.excuses or self.excuse or self.extension)

    def all(self) -> list[Decision]:
        """Return all of them, the oldest first."""
        single = [one for one in (self.excuse, self.extension) if one is not None]
        found = [*self.points.values(), *self.excuses.values(), *single]
        return sorted(found, key=lambda one: one.number)


def by_student(
    decisions: Iterable[Decision], students: Sequence[Student]
) -> tuple[dict[str, StudentDecisions], list[Decision]]:
    """Return the decisions that hold, by key, and those whose student has handed in nothing.

    Of several on the same thing the newest holds; so points after an excuse from the exercise
    replace the excuse, and the other way round.
    """
    keys = {one.key for one in students}
    whose: dict[str, dict[tuple[str, str], Decision]] = {}
    waiting = []
    for one in decisions:
        if one.undone_at:
            continue
        key = one.student if one.student in keys else _key_of(one.student, students)
        if key is None:
            waiting.append(one)
            continue
        thing = "extension" if one.kind is DecisionKind.EXTENSION else "grade"
        whose.setdefault(key, {})[thing, one.exercise] = one
    return {key: _holding(found.values()) for key, found in whose.items()}, waiting


def _key_of(reference: str, students: Sequence[Student]) -> str | None:
    """Return the key of the one student whose number, address or name a reference is."""
    if is_key(reference):
        return None  # of a submission that is gone
    found = [one.key for one in students if Assignment.names(reference, *names_of(one))]
    return found[0] if len(found) == 1 else None


def extended(
    assignment: Assignment, decisions: Iterable[Decision], students: Sequence[Student]
) -> Assignment:
    """Return an assignment with the extensions that were decided before those that it states."""
    holding, not_here = by_student(decisions, students)
    until = {one.student: one.until for one in not_here if one.kind is DecisionKind.EXTENSION} | {
        key: found.extension.until for key, found in holding.items() if found.extension
    }
    times = {who: datetime.fromisoformat(at) for who, at in until.items()}
    stated = {who: at for who, at in assignment.extensions.items() if who not in times}
    return replace(assignment, extensions=times | stated)


def _holding(decisions: Iterable[Decision]) -> StudentDecisions:
    found = list(decisions)
    grades = [one for one in found if one.kind is not DecisionKind.EXTENSION]
    return StudentDecisions(
        points={one.exercise: one for one in grades if one.kind is DecisionKind.POINTS},
        excuses={
            one.exercise: one for one in grades if one.kind is DecisionKind.EXCUSE and one.exercise
        },
        excuse=next((o for o in grades if o.kind is DecisionKind.EXCUSE and not o.exercise), None),
        extension=next((one for one in found if one.kind is DecisionKind.EXTENSION), None),
    )
