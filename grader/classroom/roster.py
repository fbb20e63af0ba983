"""The roster of a class: who should have handed something in.

:func:`read_roster` reads a list of students as a CSV file: Canvas' exported gradebook, Moodle's
grading worksheet or list of participants, or any table with a column for names. :func:`complete`
finds the roster's students among the submissions, and gives a row to those who handed in nothing.

A student is found by number, then by address, then by name.  A number is compared with those of
its own kind alone: Canvas' download has Canvas' own user number, and Moodle's that of the
participant, which mean somebody else in any other column.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.classroom.arrivals import StudentSubmission
from grader.classroom.assignment import Assignment, RosterStudent
from grader.classroom.gradebooks import Table
from grader.classroom.names import first_last, folded, key, raw, shown
from grader.classroom.store import StoredSubmission
from headcount.core.errors import RequestError

#: Columns, in lower case, that hold the whole name, and its two parts.
_NAMES = ("student", "full name", "name", "student name")
_FIRST_NAMES, _LAST_NAMES = ("first name", "firstname"), ("last name", "lastname", "surname")

#: Columns of addresses.
_ADDRESSES = ("email address", "e-mail address", "email", "e-mail")

#: Canvas' column of logins, which are addresses at some schools.
_LOGIN = "sis login id"

#: Columns of numbers and logins, and the platform that names its downloads by them, if one does.
_NUMBERS = {
    "id": "canvas",
    "identifier": "moodle",
    "sis user id": "",
    _LOGIN: "",
    "integration id": "",
    "id number": "",
    "idnumber": "",
    "username": "",
    "login": "",
    "number": "",
    "student id": "",
    "sid": "",
    "orgdefinedid": "",
}

#: What Excel makes of a number with many digits, most of which are lost.
_SHORTENED = re.compile(r"\d(?:[.,]\d+)?E\+\d+")

#: The column of Moodle's worksheet that says when a student has handed in, and how it is written.
_HANDED_IN = "last modified (submission)"
_TIMES = ("%A, %d %B %Y, %I:%M %p", "%A, %B %d, %Y, %I:%M %p", "%A, %d %B %Y, %H:%M")

#: Roles of people who hand in nothing, in the exports of platforms.
_STAFF = re.compile(
    r"instructor|(?:non-editing )?teacher|ta|teaching assistant|reader|grader|manager|designer"
)

#: Canvas' own lines below its header, and its student for trying things out.
_NO_STUDENT = re.compile(r"\s*points possible\s*|student, test", re.IGNORECASE)


def read_roster(path: Path) -> tuple[RosterStudent, ...]:
    """Return the students of a roster.

    Raises:
        RequestError: it cannot be read, has no column of names or two, or says two things of one
            number.
    """
    table = Table(path, "a roster")
    whole = table.column(*_NAMES)
    parts = [table.column(*_FIRST_NAMES), table.column(*_LAST_NAMES)]
    names = parts if whole is None else [whole]
    if None in names:  # Moodle's worksheet where marking is anonymous: "Participant 900"
        names = [table.column("identifier")]
    if None in names:
        raise RequestError(
            f"{path} is no roster: its first line holds {table.begins}, and should hold Student"
            " (Canvas' exported gradebook), Full name (Moodle's grading worksheet), or name,"
            " besides email and id"
        )
    addresses = [at for at in (table.column(*_ADDRESSES), table.column(_LOGIN)) if at is not None]
    times, roles = table.column(_HANDED_IN), table.column("role", "roles")
    is_canvas = table.column("section") is not None
    numbers = {
        # a table of somebody's own has numbers of no platform's
        at: "" if platform == "canvas" and not is_canvas else platform
        for name, platform in _NUMBERS.items()
        if (at := table.column(name)) is not None
    }
    students: dict[RosterStudent, None] = {}  # lists that were pasted together repeat lines
    by_number: dict[tuple[int, str], RosterStudent] = {}
    for line in table.rows[1:]:
        name = " ".join(line[at].strip() for at in names if at is not None).strip()
        role = "" if roles is None else line[roles].strip().casefold()
        if not name or _NO_STUDENT.fullmatch(name) or _STAFF.fullmatch(role):
            continue
        known = {at: _number(line[at], kind) for at, kind in numbers.items()}
        student = RosterStudent(
            shown(raw(name)),
            next((shown(raw(line[at].strip())) for at in addresses if "@" in line[at]), None),
            tuple((number, numbers[at]) for at, number in known.items() if number),
            None if times is None else _time(line[times]),
        )
        students[student] = None
        for at, number in known.items():
            other = by_number.setdefault((at, folded(number)), student) if number else student
            what = f"{path} has {number} in the column {table.head[at].strip()!r}"
            if _SHORTENED.fullmatch(number):
                raise RequestError(
                    f"{what}, to which Excel has shortened a number; show that column as numbers"
                    " without decimals there, and save it again"
                )
            if other != student:
                raise RequestError(
                    f"{what} for two students, {other.name} and {student.name}, or with two"
                    " addresses for one; delete the line that is not right"
                )
    return tuple(students)


def _number(cell: str, platform: str) -> str:
    """Return a student's number or login, without what a platform puts before it."""
    cell = cell.strip()
    if platform == "moodle":  # "Participant 900", whose word is in the site's language
        found = re.search(r"\d+\Z", cell)
        return found[0] if found else ""
    return shown(raw(cell.removeprefix("#")))  # Brightspace writes "#u1"


def _time(cell: str) -> datetime | None:
    """Return a time as Moodle writes it in English, without a time zone; None for ``-``."""
    for form in _TIMES:
        with contextlib.suppress(ValueError):
            return datetime.strptime(cell.replace("\u202f", " ").strip(), form)
    return None


#: A way to find the students of a submission: what to compare of each.
_Forms = tuple[
    Callable[[StudentSubmission], Iterable[str]], Callable[[RosterStudent], Iterable[str]]
]


def complete(
    roster: Sequence[RosterStudent],
    submissions: Sequence[StudentSubmission],
    stored: Sequence[StoredSubmission],
) -> tuple[list[StudentSubmission], list[str]]:
    """Return the submissions with what the roster knows, and a row for everybody else in it.

    Args:
        roster: the students of the class.
        submissions: what has arrived.
        stored: the rows that stay; a student whose work is among them needs no other.

    Returns:
        All rows, and sentences on students who were not found.
    """
    found, fitting = _match(roster, submissions)
    contested = set().union(*fitting.values()) - found.keys()
    keys = {entry.key for entry in stored}
    rows: list[StudentSubmission] = []
    remarks: dict[str, list[str]] = defaultdict(list)
    for one in submissions:
        student = found.get(one.key)
        if student is None:
            why = "contested in the roster" if one.key in contested else "not in the roster"
            rows.append(replace(one, problems=(*one.problems, why)))
            remarks[why].append(one.student)
        else:
            rows.append(_known(one, student, keys))
    here = {id(student) for student in found.values()}
    handed_in = [{entry.key, *entry.identities} for entry in stored if not entry.only_in_roster]
    for student in roster:
        own = {_key(student), *student.identities}
        if id(student) not in here and not any(own & names for names in handed_in):
            rows.append(_absent(student, bool(fitting[id(student)] & contested)))
    return rows, [f"{what}: {', '.join(names)}" for what, names in remarks.items()]


def widened(assignment: Assignment) -> Assignment:
    """Return an assignment whose times of single students name them in every way.

    A download may know a student by a login alone, where the instructor has written an address.
    """

    def all_names(times: Mapping[str, datetime]) -> dict[str, datetime]:
        found = dict(times)
        for who, at in times.items():
            for student in assignment.roster:
                every = (student.name, student.email, *student.identities)
                if assignment.names(who, *every):
                    found |= {name: at for name in every if name and name not in found}
        return found

    return replace(
        assignment,
        extensions=all_names(assignment.extensions),
        handed_in=all_names(assignment.handed_in),
    )


def _match(
    roster: Sequence[RosterStudent], submissions: Sequence[StudentSubmission]
) -> tuple[dict[str, RosterStudent], dict[int, set[str]]]:
    """Return who has handed in what, by its key, and what may be whose, by the student's ``id``."""
    found: dict[str, RosterStudent] = {}
    may_be: dict[int, set[str]] = defaultdict(set)
    for of_submission, of_student in _ways_to_find():
        index: dict[str, list[RosterStudent]] = defaultdict(list)
        for student in roster:
            for form in set(of_student(student)):
                index[form].append(student)
        taken = {id(student) for student in found.values()}
        claims: dict[int, list[tuple[str, RosterStudent]]] = defaultdict(list)
        for one in submissions:
            if one.key in found:
                continue
            fitting = {id(s): s for form in of_submission(one) for s in index.get(form, ())}
            for mark in fitting:
                may_be[mark].add(one.key)
            if len(fitting) == 1 and not taken & fitting.keys():
                ((mark, student),) = fitting.items()
                claims[mark].append((one.key, student))
        for claim in claims.values():
            if len(claim) == 1:
                found.update(claim)
    return found, may_be


def _ways_to_find() -> Iterator[_Forms]:
    """Yield the ways to find a student, the surest first."""
    yield (
        lambda one: [f"{_column_kind(one.platform)}\0{folded(one.number)}"] if one.number else [],
        lambda student: [f"{kind}\0{folded(number)}" for number, kind in student.numbers],
    )
    yield (
        lambda one: [folded(one.email)] if one.email else [],
        lambda student: [folded(student.email)] if student.email else [],
    )
    yield (
        lambda one: [first_last(one.student), folded(one.student)],
        lambda student: [first_last(student.name)],
    )
    # Canvas writes a name in lower case without spaces; people name folders by logins
    yield (
        lambda one: [_letters(one.student), folded(one.student)],
        lambda student: [
            _letters(student.name),
            _letters(first_last(student.name)),
            *(folded(number) for number, kind in student.numbers if not kind),
            *([folded(student.email.partition("@")[0])] if student.email else []),
        ],
    )


def _key(student: RosterStudent) -> str:
    """Return the key of the row if nothing was handed in."""
    mark = student.numbers[0][0] if student.numbers else student.email or student.name
    return key(b"roster\0" + raw(mark), student.name)


def _column_kind(platform: str) -> str:
    return platform if platform in _NUMBERS.values() else ""


def _letters(name: str) -> str:
    return "".join(c for c in folded(name) if c.isalnum())


def _known(
    one: StudentSubmission, student: RosterStudent, keys: Collection[str]
) -> StudentSubmission:
    """Return a submission with what the roster knows of its student."""
    return replace(
        one,
        # a row that the student had before handing anything in stays the same row
        key=_key(student) if _key(student) in keys else one.key,
        student=student.name,
        email=one.email or student.email,
        identities=student.identities,
        handed_in=one.handed_in or student.handed_in,
    )


def _absent(student: RosterStudent, contested: bool) -> StudentSubmission:
    """Return the row of a student who handed in nothing, or whose work cannot be told."""
    number, platform = next(iter(student.numbers), (None, ""))
    what = "it is contested what was handed in" if contested else "handed in nothing"
    return StudentSubmission(
        _key(student),
        student.name,
        student.email,
        number,
        (),
        (f"in the roster, and {what}",),
        platform,
        identities=student.identities,
        only_in_roster=True,
    )
