"""The roster of a class: who should have handed something in.

:func:`read_roster` reads a list of students as a CSV file: Canvas' exported gradebook, Moodle's
grading worksheet or list of participants, or any table with a column for names.
:func:`complete` finds the roster's students among the submissions, and gives a row to
those who handed in nothing.

A student is found by number, then by address, then by name.  A number is compared with those of
its own kind alone: Canvas' download has Canvas' own user number, and Moodle's that of the
participant, which mean somebody else in any other column.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.classroom.arrivals import StudentSubmission
from grader.classroom.assignment import Assignment, RosterStudent
from grader.classroom.names import first_last, folded, key, raw, shown
from grader.classroom.store import StoredSubmission
from headcount.core.errors import RequestError

__all__ = ["complete", "read_roster", "widened"]

#: Columns, in lower case, that hold the whole name, and its two parts.
_NAMES = ("student", "full name", "name", "student name")
_PARTS = (("first name", "last name"), ("firstname", "lastname"), ("first name", "surname"))

#: Columns of addresses.
_ADDRESSES = ("email address", "email", "e-mail", "sis login id")

#: Columns of numbers and logins, and the platform that names its downloads by them, if one does.
_NUMBERS = {
    "id": "canvas",
    "identifier": "moodle",
    "sis user id": "",
    "sis login id": "",
    "integration id": "",
    "id number": "",
    "idnumber": "",
    "username": "",
    "login": "",
    "number": "",
    "student id": "",
    "sid": "",
}

#: The column of Moodle's worksheet that says when a student has handed in, and how it is written.
_HANDED_IN = "last modified (submission)"
_TIMES = ("%A, %d %B %Y, %I:%M %p", "%A, %B %d, %Y, %I:%M %p", "%A, %d %B %Y, %H:%M")

#: Canvas' own lines below its header, and its student for trying things out.
_NO_STUDENT = re.compile(r"\s*points possible\s*|student, test", re.IGNORECASE)


def read_roster(path: Path) -> tuple[RosterStudent, ...]:
    """Return the students of a roster.

    Raises:
        RequestError: it cannot be read, or has no column of names.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        first = text.partition("\n")[0]
        delimiter = max(",;\t", key=first.count)
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RequestError(f"{path} cannot be read as a roster: {reason}") from None
    head = [cell.strip().casefold() for cell in lines[0]] if lines else []
    if _name_of(dict.fromkeys(head, "x")) is None:
        raise RequestError(
            f"{path} is no roster: its first line holds {', '.join(head[:6]) or 'nothing'}, and"
            " should hold Student (Canvas' exported gradebook), Full name (Moodle's grading"
            " worksheet), or name, besides email and id"
        )
    students = [_student(dict(zip(head, line, strict=False))) for line in lines[1:]]
    return tuple(one for one in students if one is not None)


def _name_of(cells: Mapping[str, str]) -> str | None:
    """Return the name in a line, or None if the table has no column of names."""
    for column in _NAMES:
        if column in cells:
            return cells[column].strip()
    for first, last in _PARTS:
        if first in cells and last in cells:
            return f"{cells[first].strip()} {cells[last].strip()}".strip()
    return None


def _student(cells: Mapping[str, str]) -> RosterStudent | None:
    name = _name_of(cells) or ""
    if not name or _NO_STUDENT.fullmatch(name):
        return None
    addresses = [cells[column].strip() for column in _ADDRESSES if "@" in cells.get(column, "")]
    numbers = []
    for column, platform in _NUMBERS.items():
        cell = cells.get(column, "").strip()
        if platform == "moodle":  # "Participant 900", whose word is in the site's language
            found = re.search(r"\d+\Z", cell)
            cell = found[0] if found else ""
        if cell:
            # a table of somebody's own has numbers of no platform's
            known = platform if platform != "canvas" or "section" in cells else ""
            numbers.append((shown(raw(cell)), known))
    return RosterStudent(
        shown(raw(name)),
        shown(raw(addresses[0])) if addresses else None,
        tuple(numbers),
        _time(cells.get(_HANDED_IN, "")),
    )


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
    found = _match(roster, submissions)
    keys = {entry.key for entry in stored}
    rows: list[StudentSubmission] = []
    for one in submissions:
        student = found.get(one.key)
        if student is None:
            rows.append(replace(one, problems=(*one.problems, "not in the roster")))
        else:
            rows.append(_known(one, student, keys))
    here = {id(student) for student in found.values()}
    handed_in = [{entry.key, *entry.identities} for entry in stored if not entry.only_in_roster]
    for student in roster:
        own = {_key(student), *student.identities}
        if id(student) not in here and not any(own & names for names in handed_in):
            rows.append(_absent(student))
    strangers = [one.student for one in submissions if one.key not in found]
    return rows, [f"not in the roster: {', '.join(strangers)}"] if strangers else []


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
) -> dict[str, RosterStudent]:
    """Return the student of each submission that is one student's alone, by its key."""
    found: dict[str, RosterStudent] = {}
    for of_submission, of_student in _ways():
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
            if len(fitting) == 1 and not taken & fitting.keys():
                ((mark, student),) = fitting.items()
                claims[mark].append((one.key, student))
        for claim in claims.values():
            if len(claim) == 1:
                found.update(claim)
    return found


def _ways() -> Iterator[_Forms]:
    """Yield the ways to find a student, the surest first."""
    yield (
        lambda one: [f"{_kind(one.platform)}\0{folded(one.number)}"] if one.number else [],
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


def _kind(platform: str) -> str:
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


def _absent(student: RosterStudent) -> StudentSubmission:
    """Return the row of a student who handed in nothing."""
    number, platform = next(iter(student.numbers), (None, ""))
    return StudentSubmission(
        _key(student),
        student.name,
        student.email,
        number,
        (),
        ("in the roster, and handed in nothing",),
        platform,
        identities=student.identities,
        only_in_roster=True,
    )
