"""An assignment: what is due, what it is worth, until when, and what lateness costs.

An instructor writes it down in a file, ``assignment.toml``::

    title = "Week 2"
    exercises = ["02-05", "ring_all_reduce"]
    due = 2026-11-20 23:59:00
    time_zone = "Europe/Berlin"
    roster = "canvas.csv"

    [weights]
    ring_all_reduce = 3

    [late]
    per_day = 10
    cap = 50
    grace = 15

    [extensions]
    "ada@example.edu" = 2026-11-22 23:59:00

:func:`read_assignment` reads it, and every error names the line and the mend.  The store keeps
the :class:`Assignment` itself, so that an export needs no file.
"""

from __future__ import annotations

import bisect
import codecs
import contextlib
import difflib
import itertools
import math
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin
from zoneinfo import ZoneInfo, available_timezones

import msgspec
from msgspec import structs

from grader.classroom.names import first_last, folded
from grader.errors import MissingPackage, UnknownExercise
from headcount.core.errors import RequestError

#: What an assignment without a title is called on pages.
UNTITLED = "Gather Round"

#: What a student's page shows: points alone; also what is wrong; also hints.
Shown = Literal["points", "verdicts", "hints"]

#: Which of several attempts counts.
Attempts = Literal["newest in time", "newest"]

_DAY = 86_400.0

#: Minutes of a year, and the most points of an exercise.
_YEAR, _MOST_POINTS = 366 * 24 * 60, 1_000_000


@dataclass(frozen=True)
class RequestedExercise:
    """An exercise that belongs to the assignment.

    Attributes:
        name: its name.
        chapter: the name of its chapter.
        points: the points that it is worth in the assignment.
    """

    name: str
    chapter: str
    points: float


# Lateness. ------------------------------------------------------------------------


class LatePolicy(msgspec.Struct, frozen=True):
    """What lateness costs.

    Attributes:
        per_day: percent of all points of the assignment, for each day that has begun.
        cap: the most percent that are taken.
        grace: minutes after the deadline in which nothing is late.
        until: the time after which late work is worth nothing, except for those whose extension
            ends later; None where only its cost ends it.
    """

    per_day: float = 0.0
    cap: float = 100.0
    grace: float = 0.0
    until: datetime | None = None

    def lateness(self, due: datetime, handed_in: datetime) -> Lateness | None:
        """Return how late a submission is, or None if it is in time.

        Days are counted from the deadline, not from the end of the grace period, and have 24 hours
        whatever clocks show, which are put forward and back.
        """
        due, handed_in = due.astimezone(timezone.utc), handed_in.astimezone(timezone.utc)
        seconds = (handed_in - due).total_seconds()
        if seconds <= 60 * self.grace or seconds <= 0:
            return None
        if self.until is not None and handed_in > max(self.until.astimezone(timezone.utc), due):
            return Lateness(seconds, 1.0, closed=True)
        taken = min(self.per_day * math.ceil(seconds / _DAY), self.cap, 100.0)
        return Lateness(seconds, taken / 100)


@dataclass(frozen=True)
class Lateness:
    """How late a submission is, and what that costs.

    Attributes:
        seconds: time since the deadline; None where a platform has marked the submission as late,
            and nothing says by how much.
        taken: the share of all points of the assignment that is taken off, 0 to 1.
        closed: whether it came when late work was no longer accepted.
    """

    seconds: float | None = None
    taken: float = 0.0
    closed: bool = False

    @property
    def words(self) -> str:
        """How late it is and what is taken off, such as ``1 day 3 h late: −20 % of all points``."""
        if self.seconds is None:
            return "marked late, nothing says by how much: no points are taken off"
        minutes = math.ceil(self.seconds / 60)
        days, hours = divmod(minutes // 60, 24)
        parts = [f"{days} day{'s' * (days != 1)}"] * bool(days) + [f"{hours} h"] * bool(hours)
        taken = f"−{self.taken:.0%} of all points" if self.taken else "no points are taken off"
        closed = ", when late work was no longer accepted" * self.closed
        return f"{' '.join(parts) or f'{minutes} min'} late{closed}: {taken}".replace("%", " %")


# The assignment. ------------------------------------------------------------------


class LimitsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table ``[limits]`` of the file, where a limit that it does not say is the grader's own.

    Attributes:
        timeout: seconds that a submission may take.
        seconds: seconds that a rank may compute in a call.
        memory: megabytes that all ranks of a submission may use.
    """

    timeout: int | None = None
    seconds: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class RosterStudent:
    """A student of the roster.

    Attributes:
        name: the name as the roster has it.
        email: the address, if there is one.
        numbers: numbers and logins, each with the platform that names its downloads by it, or an
            empty string; further addresses with ``email``.
        handed_in: when the roster says that the student has handed in.
        section, groups: the part of the class and the groups that the student is in.
    """

    name: str
    email: str | None
    numbers: tuple[tuple[str, str], ...]
    handed_in: datetime | None = None
    # who is in two parts of a class is in two lines of a list
    section: str = field(default="", compare=False)
    groups: tuple[str, ...] = field(default=(), compare=False)

    @property
    def identities(self) -> tuple[str, ...]:
        """Whatever tells who it is, besides the name and the address."""
        return tuple(dict.fromkeys(number for number, _ in self.numbers))


@dataclass(frozen=True)
class Assignment:
    """What students were asked for.

    Attributes:
        title: its title, which names a column in gradebooks; empty if nobody has stated one.
        exercises: the exercises that are due, in the order of the course; empty if nobody has
            stated them, and what at least one student handed in is taken for due.
        due: the deadline, with its time zone.
        time_zone: name of the zone of times that have none, such as those in file names.
        late: what lateness costs.
        extensions: deadlines of single students, by name, number or address.
        handed_in: times of submissions that the platform's names do not tell, by student.
        attempts: which of several attempts counts: the newest that is in time, and the newest of
            all if none is; or the newest of all.
        shows: what a student's page shows.
        roster: everybody who should have handed something in; empty if there is no roster.
        seed: the seed of all inputs, if it is stated.
        limits: limits on a submission.
    """

    title: str = ""
    exercises: tuple[RequestedExercise, ...] = ()
    due: datetime | None = None
    time_zone: str = ""
    late: LatePolicy = field(default_factory=LatePolicy)
    extensions: Mapping[str, datetime] = field(default_factory=dict)
    handed_in: Mapping[str, datetime] = field(default_factory=dict)
    attempts: Attempts = "newest in time"
    shows: Shown = "hints"
    roster: tuple[RosterStudent, ...] = ()
    seed: int | None = None
    limits: LimitsTable = field(default_factory=LimitsTable)

    @property
    def zone(self) -> tzinfo | None:
        """The time zone of times that have none; that of the deadline if none is named."""
        if self.time_zone:
            return ZoneInfo(self.time_zone)
        return self.due.tzinfo if self.due is not None else None

    def due_for(self, *identities: str | None) -> datetime | None:
        """Return a student's deadline: the latest of the extensions and that of the class.

        Args:
            identities: the student's name, number, address, and whatever else tells who it is.
        """
        found = [*_entries(self.extensions, identities), *([self.due] if self.due else [])]
        return max(found, key=datetime.timestamp, default=None)

    def handed_in_by(self, *identities: str | None) -> datetime | None:
        """Return the time that the instructor has stated for a student's submission, if any."""
        return next(_entries(self.handed_in, identities), None)

    @staticmethod
    def names(who: str, *identities: str | None) -> bool:
        """Return whether a name, number or address in the file is one of a student's."""
        return bool({folded(who), first_last(who)} & _forms(identities))

    def aware(self, moment: datetime) -> datetime:
        """Return a time with a time zone: its own, or that of the assignment, or the machine's."""
        if moment.tzinfo is not None:
            return moment
        zone = self.zone
        return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)

    def lateness(
        self, due: datetime | None, handed_in: datetime | None, marked: bool
    ) -> Lateness | None:
        """Return how late a submission is, or None if it is in time or nothing tells.

        Args:
            due: the student's deadline.
            handed_in: the time of the submission, where it is known.
            marked: whether a platform has marked it as late.
        """
        if due is not None and handed_in is not None:
            return self.late.lateness(due, self.aware(handed_in))
        return Lateness() if marked else None


def _entries(
    entries: Mapping[str, datetime], identities: Iterable[str | None]
) -> Iterator[datetime]:
    wanted = _forms(identities)
    return (at for who, at in entries.items() if wanted & {folded(who), first_last(who)})


def _forms(identities: Iterable[str | None]) -> set[str]:
    return {form(one) for one in identities if one for form in (folded, first_last)}


# Exercises by what an instructor writes: chapters, ranges of them, names. ---------


def requested(
    items: Sequence[str], weights: Mapping[str, float] | None = None
) -> tuple[RequestedExercise, ...]:
    """Return the exercises that an assignment asks for, in the order of the course.

    Args:
        items: chapters (``02``, ``02_broadcast``), ranges of chapters (``02-05``) and names of
            exercises.
        weights: points by name of an exercise, or by chapter for each of its exercises; others
            are worth what the course says.

    Raises:
        RequestError: the course has no such exercise or chapter, or a weight is of an exercise
            that is not asked for.
    """
    from grader.course.index import course_index

    index = course_index()
    wanted = {name for item in items for name in _names(item)}
    points = {name: index[name].points for name in wanted}
    # what an exercise is worth by its own name counts before what its chapter says
    ordered = sorted((weights or {}).items(), key=lambda entry: entry[0] in index)
    for item, weight in ordered:
        names = wanted & set(_names(item))
        if not names:
            raise RequestError(
                f"{item!r} has a weight and is not among the exercises of the assignment; add it"
                " there, or leave its weight out"
            )
        if not 0 <= weight <= _MOST_POINTS:
            raise RequestError(
                f"the weight of {item!r} is {weight:g}; it is a number from 0 to {_MOST_POINTS:,}"
            )
        points |= dict.fromkeys(names, float(weight))
    return tuple(
        RequestedExercise(name, entry.chapter, points[name])
        for name, entry in index.items()
        if name in wanted
    )


#: Chapters, as people say them elsewhere.
_CHAPTERS = re.compile(r"(?:ch\w*)?\W*\d{1,2}(?:\W+(?:\w{1,3}\W+)?\d{1,2})*\W*", re.IGNORECASE)

_RANGE = re.compile(r"(\d{1,2})(?:\s*[-–]\s*(\d{1,2}))?")


def _names(item: str) -> list[str]:
    """Return the names of the exercises that one item asks for."""
    from grader.course.index import course_index

    index = course_index()
    item = item.strip()
    chapters = index.chapters()
    if found := _RANGE.fullmatch(item):
        first, last = int(found[1]), int(found[2] or found[1])
        inside = [name for name in chapters if first <= int(name[:2]) <= last]
        ends = {int(name[:2]) for name in inside}
        if first > last or not {first, last} <= ends:
            known = list(chapters)
            raise RequestError(
                f"{item!r}: chapters with exercises are {known[0][:2]} to {known[-1][:2]}, and"
                " `python -m grader list` shows them"
            )
        return [one.name for name in inside for one in chapters[name]]
    if item in chapters:
        return [one.name for one in chapters[item]]
    if item not in index and _CHAPTERS.fullmatch(item):
        numbers = [f'"{int(number):02}"' for number in re.findall(r"\d+", item)]
        raise RequestError(
            f"{item!r}: chapters are said by their numbers alone, here {', '.join(numbers)}; all"
            ' from one to another are such as "02-05"'
        )
    if item not in index:
        raise UnknownExercise(item, [*index, *chapters])
    return [item]


# The file. ------------------------------------------------------------------------


class AssignmentFile(msgspec.Struct, frozen=True):
    """The contents of ``assignment.toml``, as they are written."""

    title: str
    exercises: list[str]
    due: datetime | None = None
    time_zone: str = ""
    roster: str = ""
    people: str = ""
    attempts: Attempts = "newest in time"
    students_see: Shown = "hints"
    seed: int | None = None
    weights: dict[str, float] = {}
    late: LatePolicy = LatePolicy()
    extensions: dict[str, datetime] = {}
    handed_in: dict[str, datetime] = {}
    limits: LimitsTable = LimitsTable()


@dataclass(frozen=True)
class StatedAssignment:
    """What an ``assignment.toml`` says.

    Attributes:
        assignment: what the store keeps.
        roster: the path of the list of students, if there is one.
        people: the path of the table of people, if there is one.
        remarks: sentences on what has no effect.
    """

    assignment: Assignment
    roster: Path | None = None
    people: Path | None = None
    remarks: tuple[str, ...] = ()


def read_assignment(path: Path) -> StatedAssignment:
    """Read an ``assignment.toml``.

    Args:
        path: the file; the roster's path in it is relative to its folder.

    Raises:
        RequestError: it cannot be read, or says something that cannot be; the message names the
            line and the mend.
    """
    file = TomlFile(path)
    stated = file.table(file.decoded(), AssignmentFile)
    zone = file.zone(stated.time_zone)
    with file.at("title"):
        if not stated.title.strip():
            raise RequestError("the title is empty; name the assignment as your gradebook does")
        if not stated.title.isprintable():
            raise RequestError("the title is one line of text; leave out line breaks and tabs")
    exercises = file.exercises(stated.exercises, stated.weights)
    for name, percent in (("per_day", stated.late.per_day), ("cap", stated.late.cap)):
        with file.at("late", name):
            if percent != 0 and not 1 <= percent <= 100:
                raise RequestError(
                    f"{name} is {percent:g}, and is percent of all points, 0 or from 1 to 100; a"
                    f" tenth is {name} = 10"
                )
    with file.at("late", "grace"):
        if not 0 <= stated.late.grace <= _YEAR:
            raise RequestError(f"grace is minutes, from 0 to {_YEAR} (a year)")
    for name, limit in structs.asdict(stated.limits).items():
        with file.at("limits", name):
            if limit is not None and not 0 < limit < math.inf:
                raise RequestError(f"{name} is {limit}, and should be above 0")
    lists = {}
    for name, named in (("roster", stated.roster), ("people", stated.people)):
        lists[name] = path.parent / named if named else None
        with file.at(name):
            if named and not (path.parent / named).is_file():
                raise RequestError(
                    f"there is no file {lists[name]}; its path is relative to {path.name}"
                )
    due = None if stated.due is None else file.moment(("due",), stated.due, zone)
    if due is None and (stated.extensions or stated.late != LatePolicy()):
        with file.at("extensions" if stated.extensions else "late"):
            raise RequestError("there is no deadline; say it, such as due = 2026-11-20 23:59:00")
    until = stated.late.until
    if until is not None:
        until = file.moment(("late", "until"), until, zone)
        with file.at("late", "until"):
            if due is not None and until < due:
                raise RequestError(
                    f"until is {stated.late.until}, before the deadline {stated.due}: name a time"
                    " after it, or leave until out"
                )
    extensions, handed_in = (
        {who: file.moment((table, who), at, zone) for who, at in times.items()}
        for table, times in (("extensions", stated.extensions), ("handed_in", stated.handed_in))
    )
    return StatedAssignment(
        Assignment(
            stated.title.strip(),
            exercises,
            due,
            stated.time_zone,
            structs.replace(stated.late, until=until),
            extensions,
            handed_in,
            stated.attempts,
            stated.students_see,
            seed=stated.seed,
            limits=stated.limits,
        ),
        lists["roster"],
        lists["people"],
        tuple(
            f"{path.name}, line {file.line('extensions', who)}: the extension of {who!r} is before"
            " the deadline, which is later and counts"
            for who, at in extensions.items()
            if due is not None and at < due
        ),
    )


_Table = TypeVar("_Table", bound=msgspec.Struct)


class TomlFile:
    """The text of the file, to say in which line something is wrong.

    Raises:
        RequestError: it cannot be read, or is no text.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            data = path.read_bytes()
            is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            text = data.decode("utf-16" if is_utf_16 else "utf-8-sig")
        except OSError as error:
            raise RequestError(f"{path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise RequestError(f"{path} is no text in UTF-8; save it so in your editor") from None
        self.lines = tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))

    def decoded(self) -> dict[str, Any]:
        """Return what the file holds.

        Raises:
            RequestError: it is no TOML.
        """
        try:
            return _decoded(self.lines)
        except ImportError:
            raise MissingPackage("an assignment.toml", "tomli") from None
        except msgspec.DecodeError as error:
            line, what = _slip(self.lines, *self._entries, str(error))
            raise RequestError(f"{self._path}, line {line}: {what}") from None

    @cached_property  # many entries may need a word
    def _entries(self) -> tuple[dict[tuple[str, ...], int], int]:
        return _lines_of_entries(self.lines)

    def line(self, *names: str) -> int:
        """Return the line of the entry that some keys lead to, or of an item in its list."""
        found, _ = self._entries
        known = max((names[:n] for n in range(len(names) + 1) if names[:n] in found), key=len)
        ahead = range(found[known], len(self.lines) + 1) if known != names else ()
        return next((n for n in ahead if names[-1] in self.lines[n - 1]), found[known])

    @contextlib.contextmanager
    def at(self, *names: str) -> Iterator[None]:
        """Put the file, and the line that some keys lead to, before the message of an error."""
        try:
            yield
        except RequestError as error:
            raise RequestError(f"{self._path}, line {self.line(*names)}: {error}") from None

    def table(
        self, found: Mapping[str, Any], kind: type[_Table], names: tuple[str, ...] = ()
    ) -> _Table:
        """Return a table of the file, of which each key is checked by itself.

        Args:
            found: what the table holds.
            kind: its form.
            names: the keys that lead to it.
        """
        known = {key.name: key for key in structs.fields(kind)}
        for name in found:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                mend = f"did you mean {near[0]}?" if near else f"it may hold {', '.join(known)}"
                with self.at(*names, name):
                    raise RequestError(f"{name!r} is not known here; {mend}")
        for key in known.values():
            if key.required and key.name not in found:
                raise RequestError(f"{self._path} has no {key.name}; it is {_KINDS[key.name]}")
        values = {
            name: self._value(value, known[name].type, (*names, name))
            for name, value in found.items()
        }
        return kind(**values)

    def _value(self, value: object, kind: Any, names: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            for name in _KINDS.keys() & value:
                with self.at(*names, name):
                    raise RequestError(
                        f"{name!r} stands below [{names[0]}] and so belongs to it; move it above"
                        " the first line in [ ]"
                    )
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                return self.table(value, kind, names)
            if get_origin(kind) is dict:
                of = get_args(kind)[1]
                return {name: self._value(one, of, (*names, name)) for name, one in value.items()}
        try:
            return msgspec.convert(value, kind, builtin_types=(datetime,))  # which is no text here
        except msgspec.ValidationError:
            came = str(value) if isinstance(value, date) else reprlib.repr(value)
            with self.at(*names):
                dotted = isinstance(value, dict) and len(names) > 1
                mend = "; a name with a dot stands in quotes" * dotted
                raise RequestError(
                    f"{'.'.join(names)} is {came}; {names[0]} is {_KINDS[names[0]]}{mend}"
                ) from None

    def zone(self, name: str) -> tzinfo | None:
        """Return the time zone that the file names."""
        known = available_timezones() if name else ()
        with self.at("time_zone"):
            if name and name not in known:
                # names without a region mean several zones, and those of Etc another sign
                regions = [one for one in known if "/" in one and not one.startswith("Etc/")]
                places = {one.rpartition("/")[2].casefold(): one for one in sorted(regions)}
                places |= {one.casefold(): one for one in regions}
                near = difflib.get_close_matches(name.casefold(), places, n=1, cutoff=0.8)
                region = "say a region and a city, such as America/New_York"
                mend = f"did you mean {places[near[0]]}?" if near else region
                raise RequestError(f"there is no time zone {name!r}; {mend}")
        return ZoneInfo(name) if name else None

    def moment(self, names: tuple[str, ...], at: datetime, zone: tzinfo | None) -> datetime:
        """Return a time with its time zone, which must not be left to guess.

        In the hour that comes twice it is the later one, so that nobody is late who may be in time.
        """
        if at.tzinfo is not None:
            return at
        if zone is None:
            with self.at(*names):
                raise RequestError(
                    f'the time {at} has no time zone; add time_zone = "Europe/Berlin" (yours) at'
                    f" the top, or write {at.isoformat()}+01:00"
                )
        return max((at.replace(tzinfo=zone, fold=fold) for fold in (0, 1)), key=datetime.timestamp)

    def exercises(
        self, items: Sequence[str], weights: Mapping[str, float]
    ) -> tuple[RequestedExercise, ...]:
        """Return the exercises that are due."""
        if not items:
            with self.at("exercises"):
                raise RequestError('no exercise is due; say which, such as exercises = ["02-05"]')
        for item in items:
            with self.at("exercises", item):
                requested([item])
        for item in weights:
            with self.at("weights", item):
                requested(items, {item: weights[item]})
        return requested(items, weights)


def _decoded(lines: Iterable[str]) -> dict[str, Any]:
    return dict(msgspec.toml.decode("\n".join(lines)))


#: What of a TOML file tells where a statement ends: texts, remarks, brackets, ends of lines.
_TOKENS = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\#[^\n]*|[][{}\n]""",
    re.DOTALL,
)


def _lines_of_entries(lines: Sequence[str]) -> tuple[dict[tuple[str, ...], int], int]:
    """Return the line in which each entry begins, and that of the first that is no TOML."""
    begins, number, depth = [1], 1, 0
    for token in _TOKENS.findall("\n".join(lines)):
        number += token.count("\n")
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token, 0)
        if token == "\n" and depth <= 0:
            begins.append(number)
            depth = 0
    begins.append(len(lines) + 1)

    def is_wrong(count: int) -> bool:
        with contextlib.suppress(msgspec.DecodeError):
            _decoded(lines[: begins[count] - 1])
            return False
        return True

    # whatever follows on statements that are wrong together, they stay wrong
    right = bisect.bisect_left(range(len(begins)), True, key=is_wrong) - 1
    found: dict[tuple[str, ...], int] = {}
    table: Sequence[str] = ()
    for first, after in itertools.pairwise(begins[: right + 1]):
        statement = lines[first - 1 : after - 1]
        if statement[0].lstrip().startswith("["):  # of a table, whose entries follow
            table, statement = statement, ()
        ahead: list[tuple[tuple[str, ...], object]] = [((), _decoded([*table, *statement]))]
        for names, value in ahead:
            found.setdefault(names, first)
            if isinstance(value, dict):
                ahead += [((*names, name), inner) for name, inner in value.items()]
    return found, begins[right]


#: What people write in a line that is no TOML: what is right, how theirs looks, and what to put.
_SLIPS = (
    ("quotes are straight ones", "[“”„«»]", '"'),
    ("quotes are straight ones", "[‘’‚]", "'"),
    ("there is one =", r"=\s*=", "="),
    ("a date is written year-month-day", r"\b(\d\d?)\.(\d\d?)\.(\d{4})\b", r"\3-\2-\1"),
    ("a date is written year-month-day", r"\b(\d{4})/(\d\d?)/(\d\d?)\b", r"\1-\2-\3"),
    ("its parts have two digits each", r"(?<=[-\s])(\d)(?=[-:\s]|$)", r"0\1"),
    ("a time has seconds", r"(\d-\d\d)[ T,]+(\d\d:\d\d)(?![:\d])", r"\1 \2:00"),
    ("an entry has = in its middle", r"^(\s*[\w.-]+)\s*:=?", r"\1 ="),
    ("an entry has = in its middle", r"""^(\s*[\w-]+)\s+(?=["'[\d])""", r"\1 = "),
    ("such a name stands in quotes", r"""^\s*([^"'=[]+?)\s*=""", r'"\1" ='),
    ("a number with zeros before it stands in quotes", r"""(?<![\w:."'-])(0\d+)\b""", r'"\1"'),
    ("a decimal mark is a point", r"(=\s*\d+),(\d+)\s*$", r"\1.\2"),
    ("a number stands alone", r"(=\s*[\d.]+)\s*[A-Za-z%]+\s*$", r"\1"),
    ("nothing stands behind a value", r"[],;]\s*$", ""),
    ("a remark begins with #", "(?://|;)", "#"),
    ("a quote is missing", r"""=\s*([^"']+)["']\s*$""", r'= "\1"'),
    ("a quote is missing", r"""(["'])([^"']*)$""", r"\1\2\1"),
    ("a quote is missing", r"""(["'])([^"',\]]+)([\],])\s*$""", r"\1\2\1\3"),
    ("quotes stand around each", r"""(?<=[\[,])(\s*)([^\s"'\[\],]+)\s*(?=[\],])""", r'\1"\2"'),
    ("a comma is missing", r"""(["'])\s*(["'])""", r"\1, \2"),
    ("a comma is missing", r"""(["'])\s*$""", r"\1,"),
    ("a list stands in [ ]", r"=\s*[({](.*)[)}]\s*$", r"= [\1]"),
    ("a list stands in [ ]", r"=\s*([^[]*,.*)$", r"= [\1]"),
    ("a bracket is missing", r"(\[[^\]]*)$", r"\1]"),
    ("a bracket is missing", r"""^(\s*["'][^=]*?),?\s*$""", r"\1]"),
    ("a bracket is missing", r"^\s*([\w-]+)\]", r"[\1]"),
    ("a text with \\ stands in single quotes", r'"([^"]*\\[^"]*)"', r"'\1'"),
    ("a text stands in quotes", r"""=\s*([^\W\d][^"'#[\]]*?)\s*$""", r'= "\1"'),
)


def _slip(
    lines: Sequence[str], entries: Mapping[tuple[str, ...], int], begins: int, error: str
) -> tuple[int, str]:
    """Return the line in which a file is no TOML, and what to write there.

    Args:
        lines: the file.
        entries, begins: what :func:`_lines_of_entries` says of it.
        error: what the parser says, where nothing better is known.
    """
    for number in range(begins, min(begins + 20, len(lines)) + 1):
        before, line, after = lines[: number - 1], lines[number - 1], lines[number:]
        # alone first: the whole file is right then; else it has another fault further down
        is_whole = number == begins and not line.endswith(("[", ","))
        for rest in (after, ()) if is_whole else (after,):
            together = line
            for why, looks, right in _SLIPS:
                together = re.sub(looks, right, together)
                for mended in (re.sub(looks, right, line), together):
                    with contextlib.suppress(msgspec.DecodeError):
                        _decoded([*before, mended, *rest])
                        return number, f"{why}; write {mended.strip()}"
    with contextlib.suppress(msgspec.DecodeError, StopIteration, ValueError):
        name = next(iter(_decoded([lines[begins - 1]])))
        known = max(at for names, at in entries.items() if names[-1:] == (name,))
        return begins, f"{name!r} stands in line {known} already; leave one of them out"
    mend = 'such as title = "Week 2", or due = 2026-11-20 23:59:00 with a day of the calendar'
    return begins, f"it is no TOML: {error}; {mend}"


#: What each key holds, for the message that something else is there.
_KINDS = {
    "title": 'a text, such as "Week 2"',
    "exercises": 'a list of texts, such as ["02-05", "ring_all_reduce"]',
    "due": "a date and a time, such as 2026-11-20 23:59:00, without quotes",
    "time_zone": 'a text, such as "Europe/Berlin"',
    "roster": "the path of a CSV file, as a text",
    "people": "the path of a table of people, as a text",
    "attempts": " or ".join(f'"{word}"' for word in get_args(Attempts)),
    "students_see": " or ".join(f'"{word}"' for word in get_args(Shown)),
    "seed": "a whole number",
    "weights": "points by exercise or chapter, such as ring_all_reduce = 3",
    "late": "a table: per_day = percent, cap = percent, grace = minutes, until = a date and a time",
    "extensions": 'a date and a time by student, such as "ada@example.edu" = 2026-11-22 23:59:00',
    "handed_in": 'a date and a time by student, such as "Ada Lovelace" = 2026-11-21 08:30:00',
    "limits": "a table: timeout = whole seconds, seconds = seconds, memory = whole megabytes",
}
