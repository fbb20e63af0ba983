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

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.names import first_last, folded
from grader.classroom.results import (
    ClassResults,
    GradingState,
    SubmissionRow,
    number,
    table,
    text,
)
from grader.core.errors import RequestError

__all__ = ["Canvas", "LeftOut", "canvas"]

COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")

#: Canvas itself shows and compares two decimals.
_DECIMALS = 2

#: A column of this name is taken for one of Canvas' totals, and ignored.
_RESERVED = re.compile(r"(Current|Final|Override) (Score|Points|Grade|Status)")

_NAMED = re.compile(r"^(?P<title>.*?)(?: \(\d+\))?$", re.DOTALL)

#: Cells that hold no grade and are kept: excused, not assigned.
_KEPT = frozenset({"ex", "n/a"})

#: A function from a submission to the lines of a gradebook that may be its student's.
_Finder = Callable[[SubmissionRow], list[list[str]]]


@dataclass(frozen=True)
class LeftOut:
    """A submission that got no grade in the file, with the reason."""

    row: SubmissionRow
    reason: str


@dataclass(frozen=True)
class Canvas:
    """The file, and what an instructor should know about it.

    Attributes:
        data: contents of the file.
        left_out: submissions without a grade in it.
        by_name: submissions whose student was found by the name alone, which the
            submission itself may have chosen; worth a look.
        scaled: the full score in Canvas, if it differs from that of the results;
            scores are in proportion.
    """

    data: bytes
    left_out: tuple[LeftOut, ...] = ()
    by_name: tuple[SubmissionRow, ...] = ()
    scaled: float | None = None


def canvas(results: ClassResults, gradebook: Path | None = None) -> Canvas:
    """Return the grades of a class as a file for Canvas.

    Args:
        results: the class; its title names the assignment.
        gradebook: a file that Canvas has exported.  Its rows, columns and
            other grades are kept, and the assignment's column is filled in, or
            added if there is none.  Without it, a new file is made.

    Raises:
        RequestError: the file is no gradebook of Canvas', or the title is that
            of one of Canvas' own columns.
    """
    if _RESERVED.search(results.title):
        raise RequestError(
            f"Canvas takes a column named {results.title!r} for one of its totals; "
            "give the assignment another title"
        )
    if gradebook is None:
        return _fresh(results)
    return _Gradebook(gradebook).fill(results)


def _ungraded(results: ClassResults, row: SubmissionRow) -> str:
    """Return why a submission has no grade to export, or an empty string."""
    if row.state == GradingState.NOTHING:
        return "nothing was handed in"
    return results.ungraded(row)


def _possible(results: ClassResults) -> float:
    """Return the full score, without exercises that were judged for no submission."""
    graded = [row for row in results.rows if not _ungraded(results, row)]
    return max(map(results.points_of, graded), default=results.points)


def _fresh(results: ClassResults) -> Canvas:
    possible = _possible(results)
    rows = [[*COLUMNS, text(results.title)]]
    rows.append(["    Points Possible", "", "", "", "", number(possible)])
    left_out = []
    for row in results.rows:
        reason = _ungraded(results, row)
        if reason:
            left_out.append(LeftOut(row, reason))
        # not in the column ID: a number of another system could be another student's there
        identity = [text(row.student), "", text(row.number), text(row.email), ""]
        rows.append([*identity, "" if reason else _points(results.share(row) * possible)])
    return Canvas(table(rows), tuple(left_out))


def _points(score: float) -> str:
    return number(round(score, _DECIMALS))


class _Gradebook:
    """A gradebook that Canvas has exported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            raw = path.read_bytes()
            decoded = raw.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise RequestError(f"{path} cannot be read as a gradebook: {error}") from None
        self._bom = raw.startswith(b"\xef\xbb\xbf")
        self._newline = "\r\n" if "\r\n" in decoded else "\n"
        header = decoded.partition("\n")[0]
        self._delimiter = ";" if header.count(";") > header.count(",") else ","
        stream = io.StringIO(decoded, newline="")
        try:
            self.rows = list(csv.reader(stream, delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            raise RequestError(f"{path} is no CSV file: {error}") from None
        head = self.rows[0] if self.rows else []
        named = head[:1] == ["Student"] or head[:2] == ["LastName", "FirstName"]
        if not named or "ID" not in head or "Section" not in head:
            raise RequestError(
                f"{path} is no gradebook of Canvas': its first row should hold Student, ID and"
                f" Section, but holds {', '.join(head[:6]) or 'nothing'}; export one in Canvas with"
                " Gradebook, Export, Export Entire Gradebook"
            )
        self.head = head
        self._unsure: set[str] = set()

    def fill(self, results: ClassResults) -> Canvas:
        """Return the gradebook with the assignment's grades."""
        column = self._column(results.title)
        full = _possible(results)
        possible = self._points_possible(column, full)
        matched, left_out = self._match(results.rows)
        for line, row in matched:
            if reason := _ungraded(results, row):
                left_out.append(LeftOut(row, reason))
            elif line[column].strip().lower() in _KEPT:
                reason = f"the gradebook says {line[column].strip()} for this student"
                left_out.append(LeftOut(row, reason))
            else:
                line[column] = _points(results.share(row) * possible)
        data = table(self.rows, delimiter=self._delimiter, newline=self._newline, bom=self._bom)
        order = {row.key: position for position, row in enumerate(results.rows)}
        left_out.sort(key=lambda item: order[item.row.key])
        scaled = None if possible == full else round(possible, 3)
        by_name = tuple(row for _, row in matched if row.key in self._unsure)
        return Canvas(data, tuple(left_out), by_name, scaled)

    def _column(self, title: str) -> int:
        """Return the index of the assignment's column, which is added if there is none."""
        first = self.head.index("Section") + 1
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
                possible = _number(line[column])
                if possible is None:
                    line[column] = number(full)
                return possible or full
        self.rows.insert(1, ["    Points Possible", *[""] * (len(self.head) - 1)])
        self.rows[1][column] = number(full)
        return full

    def _students(self) -> Iterator[list[str]]:
        for line in self.rows[1:]:
            ours = any(line[self.head.index(name)] for name in self._identity())
            if "Points Possible" not in line[0] and (ours or line[0].strip()):
                yield line

    def _identity(self) -> list[str]:
        return [name for name in COLUMNS[1:4] if name in self.head]

    def _match(
        self, rows: Sequence[SubmissionRow]
    ) -> tuple[list[tuple[list[str], SubmissionRow]], list[LeftOut]]:
        """Return pairs of a line and its submission, and submissions without a certain line."""
        sure, by_name = list(self._by_identity()), list(self._by_name())
        claims: dict[int, tuple[list[str], list[SubmissionRow]]] = {}
        left_out = []
        for row in rows:
            found = next(filter(None, (find(row) for find in sure)), [])
            if not found:
                found = next(filter(None, (find(row) for find in by_name)), [])
                self._unsure.add(row.key)
            if len(found) == 1:
                claims.setdefault(id(found[0]), (found[0], []))[1].append(row)
            elif found:
                left_out.append(LeftOut(row, f"{len(found)} students of the gradebook fit"))
            else:
                left_out.append(LeftOut(row, "no student of the gradebook fits"))
        matched = []
        for line, claimants in claims.values():
            if len(claimants) == 1:
                matched.append((line, claimants[0]))
            else:
                reason = f"{len(claimants)} submissions fit one student of the gradebook"
                left_out += [LeftOut(row, reason) for row in claimants]
        return matched, left_out

    def _by_identity(self) -> Iterator[_Finder]:
        """Yield ways to find a submission's student by identity, the surest first."""
        lines = list(self._students())
        for name in self._identity():
            yield _finder(lines, self.head.index(name), lambda row: row.number)
        if "SIS Login ID" in self.head:
            login = self.head.index("SIS Login ID")
            yield _finder(lines, login, lambda row: row.email)
            yield _finder(lines, login, lambda row: (row.email or "").partition("@")[0])

    def _by_name(self) -> Iterator[_Finder]:
        """Yield a way to find the student by name, which a submission can forge."""
        if self.head[0] == "Student":
            named = [(first_last(line[0]), line) for line in self._students()]
            yield lambda row: [line for name, line in named if name == first_last(row.student)]


def _finder(
    lines: list[list[str]], column: int, wanted: Callable[[SubmissionRow], str | None]
) -> _Finder:
    index: dict[str, list[list[str]]] = {}
    for line in lines:
        index.setdefault(folded(line[column]), []).append(line)
    return lambda row: index.get(folded(wanted(row) or ""), []) if wanted(row) else []


def _number(cell: str) -> float | None:
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return None
