"""The roster of a class: who should have handed something in.

It is a CSV file: Canvas' exported gradebook or list of groups, Moodle's grading worksheet or list
of participants, or any table with a column for names.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from grader.classroom.assignment import RosterStudent
from grader.classroom.gradebooks import Table
from grader.classroom.names import folded, raw, shown
from headcount.core.errors import RequestError

#: Columns, in lower case, that hold the whole name, and its two parts.
_NAMES = ("student", "full name", "name", "student name")
_FIRST_NAMES, _LAST_NAMES = ("first name", "firstname"), ("last name", "lastname", "surname")

#: Columns of parts of the class, and of groups.
_SECTIONS, _GROUPS = ("section", "sections"), ("group", "groups", "group name", "group_name")

#: Columns of addresses.
_ADDRESSES = ("email address", "e-mail address", "email", "e-mail")

#: Canvas' column of logins, which are addresses at some schools.
_LOGIN = "sis login id"

#: Columns of numbers and logins, and the platform that names its downloads by them, if one does.
_NUMBERS = {
    "id": "canvas",
    "canvas_user_id": "canvas",
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
    "user_id": "",
    "login_id": "",
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


class Roster:
    """The columns of a table that say who the person of a line is.

    Raises:
        RequestError: the table has no column of names, or two for one thing.
    """

    def __init__(self, table: Table) -> None:
        whole = table.column(*_NAMES)
        parts = [table.column(*_FIRST_NAMES), table.column(*_LAST_NAMES)]
        self._names = parts if whole is None else [whole]
        if None in self._names:  # Moodle's worksheet where marking is anonymous: "Participant 900"
            self._names = [table.column("identifier")]
        if None in self._names:
            raise RequestError(
                f"{table.path} is no roster: its first line holds {table.begins}, and should hold"
                " Student (Canvas' exported gradebook), Full name (Moodle's grading worksheet), or"
                " name, besides email and id"
            )
        addresses = (table.column(*_ADDRESSES), table.column(_LOGIN))
        self._addresses = [at for at in addresses if at is not None]
        self._times, self._roles = table.column(_HANDED_IN), table.column("role", "roles")
        self._section, self._groups = table.column(*_SECTIONS), table.column(*_GROUPS)
        own = table.column("id") if table.column("section") is None else None
        #: the kind of the numbers in each column; a table of somebody's own has no platform's
        self.numbers = {
            at: "" if at == own else platform
            for name, platform in _NUMBERS.items()
            if (at := table.column(name)) is not None
        }

    def student(self, line: Sequence[str]) -> RosterStudent | None:
        """Return the student of a line; None if it is of nobody who hands in."""
        name = " ".join(line[at].strip() for at in self._names if at is not None).strip()
        role = "" if self._roles is None else line[self._roles].strip().casefold()
        if not name or _NO_STUDENT.fullmatch(name) or _STAFF.fullmatch(role):
            return None
        addresses = (line[at].strip() for at in self._addresses if "@" in line[at])
        numbers = ((_number(line[at], kind), kind) for at, kind in self.numbers.items())
        groups = "" if self._groups is None else line[self._groups]
        return RosterStudent(
            shown(raw(name)),
            next((shown(raw(address)) for address in addresses), None),
            tuple(dict.fromkeys(number for number in numbers if number[0])),
            None if self._times is None else _time(line[self._times]),
            "" if self._section is None else shown(raw(line[self._section].strip())),
            tuple(shown(raw(group.strip())) for group in groups.split(",") if group.strip()),
        )


def read_roster(path: Path) -> tuple[RosterStudent, ...]:
    """Return the students of a roster.

    Raises:
        RequestError: it cannot be read, has no column of names or two, or says two things of one
            number.
    """
    table = Table(path, "a roster")
    roster = Roster(table)
    students: dict[
        RosterStudent, RosterStudent
    ] = {}  # lists that were pasted together repeat lines
    by_number: dict[tuple[int, str], RosterStudent] = {}
    for line in table.rows[1:]:
        student = roster.student(line)
        if student is None:
            continue
        same = students.get(student, student)
        groups = tuple(dict.fromkeys((*same.groups, *student.groups)))
        students[student] = replace(same, groups=groups)
        for at, kind in roster.numbers.items():
            number = _number(line[at], kind)
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
    return tuple(students.values())


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
