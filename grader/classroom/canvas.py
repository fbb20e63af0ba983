"""Grades for Canvas' gradebook, as the CSV file that Canvas imports.

The form is Canvas' own: "How do I import grades in the Gradebook?"
(https://community.canvaslms.com/t5/Instructor-Guide/How-do-I-import-grades-in-the-Gradebook/ta-p/807),
and, where that is silent, what Canvas does when it writes and reads the file
(https://github.com/instructure/canvas-lms, ``lib/gradebook_exporter.rb`` and
``lib/gradebook_importer.rb``): the columns Student, ID, SIS User ID, SIS Login
ID and Section, then assignments as ``Title (id)``, then read-only totals; below
the header perhaps a row that says which assignments are posted by hand, then a
row "Points Possible"; a file with semicolons is read as one.

Canvas finds students by ID, SIS user ID, SIS login ID and at last by name, and so
does this module; but where two students would fit, neither gets a grade.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from grader.classroom.gradebooks import (
    FilledGradebook,
    LeftOut,
    Table,
    as_number,
    points,
    ungraded,
)
from grader.classroom.people import OWN_NUMBERS, lines_of
from grader.classroom.results import ClassResults, GradingState, number, table, text
from headcount.core.errors import RequestError

COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_IDENTITY = COLUMNS[1:4]

#: A column of this name is taken for one of Canvas' totals, and ignored.
_RESERVED = re.compile(r"(Current|Final|Override) (Score|Points|Grade|Status)")

_NAMED = re.compile(r"^(?P<title>.*?)(?: \(\d+\))?$", re.DOTALL)

#: Cells that hold no grade and are kept: excused, not assigned.
_KEPT = frozenset({"ex", "n/a"})

#: What Canvas reads as excused.
_EXCUSED = "EX"


def canvas(
    results: ClassResults, gradebook: Path | None = None, column: str = "", force: bool = False
) -> FilledGradebook:
    """Return the grades of a class as a file for Canvas.

    Args:
        results: the class; its title names the assignment.
        gradebook: a file that Canvas has exported.  Its rows, columns and
            other grades are kept, and the assignment's column is filled in, or
            added if there is none.  Without it, a new file is made.
        column: the title of the column, if it is not that of the assignment.
        force: whether such a column may be overwritten where it holds grades.

    Raises:
        RequestError: the file is no gradebook of Canvas', the title is that of one of Canvas'
            own columns, or a column of another title holds grades.
    """
    title = column or results.title
    if _RESERVED.search(title):
        raise RequestError(
            f"Canvas takes a column named {title!r} for one of its totals; "
            "give the assignment another title"
        )
    if gradebook is None:
        return _fresh(results, title)
    return _Gradebook(gradebook).fill(results, title, owned=force or not column)


def _full_score(results: ClassResults) -> float:
    """Return the full score, without exercises that were judged for no submission."""
    graded = [row for row in results.rows if not ungraded(results, row)]
    return max(map(results.points_of, graded), default=results.points)


def _fresh(results: ClassResults, title: str) -> FilledGradebook:
    possible = _full_score(results)
    rows = [[*COLUMNS, text(title)]]
    rows.append(["    Points Possible", "", "", "", "", number(possible)])
    left_out = []
    for row in results.rows:
        reason = ungraded(results, row)
        if reason:
            left_out.append(LeftOut(row, reason))
        # each number in its own column alone: elsewhere it could be another student's
        own = row.number if row.platform == "canvas" else None
        sis = row.number if row.platform not in OWN_NUMBERS else None
        identity = [text(row.student), text(own), text(sis), text(row.email), ""]
        excused = _EXCUSED if row.state == GradingState.EXCUSED else ""
        rows.append([*identity, excused if reason else points(results.share(row) * possible)])
    return FilledGradebook(table(rows), tuple(left_out))


class _Gradebook:
    """A gradebook that Canvas has exported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = Table(path, "a gradebook")
        self.rows, self.head = self.file.rows, self.file.head
        named = self.head[:1] == ["Student"] or self.head[:2] == ["LastName", "FirstName"]
        self.at = self.file.columns(COLUMNS)
        if not named or not {"ID", "Section"} <= self.at.keys():
            raise RequestError(
                f"{path} is no gradebook of Canvas': its first row should hold Student, ID and"
                f" Section, but holds {self.file.begins}; export one in Canvas with Gradebook,"
                " Export, Export Entire Gradebook"
            )

    def fill(self, results: ClassResults, title: str, owned: bool) -> FilledGradebook:
        """Return the gradebook with the assignment's grades.

        Args:
            results: the class.
            title: the title of the column.
            owned: whether grades that are in it may be replaced.
        """
        column = self._column(title)
        filled = [line for line in self._students() if as_number(line[column]) is not None]
        if filled and not owned:
            raise RequestError(
                f"{self.path} has {len(filled)} grades in {self.head[column]!r}, and the results"
                f" are {_owner_text(results)}; --force --title {shlex.quote(title)} replaces them"
            )
        full = _full_score(results)
        possible = self._points_possible(column, full)
        lines, reasons, by_name = lines_of(results.rows, self.file, list(self._students()))
        left_out: list[LeftOut] = []
        replaced: list[str] = []
        for row in results.rows:
            line = lines.get(row.key)
            reason = reasons.get(row.key) or ungraded(results, row)
            if line is not None and not reason and line[column].strip().lower() in _KEPT:
                reason = f"the gradebook says {line[column].strip()} for this student"
            if reason:
                left_out.append(LeftOut(row, reason))
            if line is None:
                continue
            if row.state == GradingState.EXCUSED:
                line[column] = _EXCUSED
            elif not reason:
                before, now = line[column].strip(), points(results.share(row) * possible)
                if before and as_number(before) != as_number(now):
                    replaced.append(f"{line[0]} {before} → {now}")
                line[column] = now
        scaled = None if possible == full else round(possible, 3)
        return FilledGradebook(
            self.file.written(), tuple(left_out), by_name, scaled, tuple(replaced)
        )

    def _column(self, title: str) -> int:
        """Return the index of the assignment's column, which is added if there is none."""
        first = self.at["Section"] + 1
        exact = [i for i in range(first, len(self.head)) if self.head[i] == title]
        named = [
            i
            for i in range(first, len(self.head))
            if (match := _NAMED.match(self.head[i])) and match["title"] == title
        ]
        found = exact or named
        if len(found) > 1:
            raise RequestError(
                f"{self.path} has {len(found)} columns for {title!r}; give the title with its"
                f" number, as in {self.head[found[0]]!r}"
            )
        if not found:
            self.head.append(text(title))
        for line in self.rows:
            line += [""] * (len(self.head) - len(line))
        return found[0] if found else len(self.head) - 1

    def _points_possible(self, column: int, full: float) -> float:
        """Return the full score in this gradebook, and write ``full`` there if it has none."""
        for line in self.rows[1:]:
            if "Points Possible" in line[0]:
                possible = as_number(line[column])
                if possible is None and line[column].strip():
                    what = f"{line[column].strip()!r} points possible in {self.head[column]!r}"
                    raise RequestError(f"{self.path} has {what}, which is no number; mend it")
                if possible is None:
                    line[column] = number(full)
                return possible or full
        self.rows.insert(1, ["    Points Possible", *[""] * (len(self.head) - 1)])
        self.rows[1][column] = number(full)
        return full

    def _students(self) -> Iterator[list[str]]:
        for line in self.rows[1:]:
            ours = any(line[self.at[name]] for name in _IDENTITY if name in self.at)
            if "Points Possible" not in line[0] and (ours or line[0].strip()):
                yield line


def _owner_text(results: ClassResults) -> str:
    title = results.assignment.title
    return f"of {title!r}" if title else "of an assignment whose title nobody has said"
