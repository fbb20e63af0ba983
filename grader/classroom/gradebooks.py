"""Gradebooks of learning platforms: tables that are read, filled in and written again."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.names import folded
from grader.classroom.results import SubmissionRow, table
from headcount.core.errors import RequestError

__all__ = [
    "FilledGradebook",
    "Finder",
    "GradebookFile",
    "LeftOut",
    "as_number",
    "finder",
    "match",
]


@dataclass(frozen=True)
class LeftOut:
    """A submission that got no grade in a gradebook, with the reason."""

    row: SubmissionRow
    reason: str


@dataclass(frozen=True)
class FilledGradebook:
    """A file for a platform's gradebook, and what an instructor should know about it.

    Attributes:
        data: contents of the file.
        left_out: submissions without a grade in it.
        by_name: submissions whose student was found by the name alone, which the
            submission itself may have chosen; worth a look.
        scaled: the full score in the gradebook, if it differs from that of the results;
            scores are in proportion.
        replaced: sentences on grades that were others before.
    """

    data: bytes
    left_out: tuple[LeftOut, ...] = ()
    by_name: tuple[SubmissionRow, ...] = ()
    scaled: float | None = None
    replaced: tuple[str, ...] = ()


#: A function from a submission to the lines of a gradebook that may be its student's.
Finder = Callable[[SubmissionRow], list[list[str]]]


class GradebookFile:
    """A table as a platform has exported it, to be written in the same form.

    Attributes:
        rows: its lines, the header first; they may be changed.

    Args:
        path: the file.

    Raises:
        RequestError: it cannot be read, or is no table.
    """

    def __init__(self, path: Path) -> None:
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

    def written(self) -> bytes:
        """Return the table as it is now."""
        return table(self.rows, delimiter=self._delimiter, newline=self._newline, bom=self._bom)


def match(
    rows: Sequence[SubmissionRow], sure: Iterable[Finder], by_name: Iterable[Finder]
) -> tuple[list[tuple[list[str], SubmissionRow]], list[LeftOut], set[str]]:
    """Find the line of each submission.

    Args:
        rows: the submissions.
        sure: ways to find a line by identity, the surest first.
        by_name: ways to find it by the name, which a submission may have chosen.

    Returns:
        Pairs of a line and its submission; submissions without a certain line; and the keys of
        those that were looked up by name.
    """
    sure, by_name = list(sure), list(by_name)
    claims: dict[int, tuple[list[str], list[SubmissionRow]]] = {}
    left_out = []
    unsure = set()
    for row in rows:
        found = next(filter(None, (find(row) for find in sure)), [])
        if not found:
            found = next(filter(None, (find(row) for find in by_name)), [])
            unsure.add(row.key)
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
    return matched, left_out, unsure


def finder(
    lines: Iterable[list[str]], column: int, wanted: Callable[[SubmissionRow], str | None]
) -> Finder:
    """Return a way to find lines whose cell of a column is what is wanted of a submission."""
    index: dict[str, list[list[str]]] = {}
    for line in lines:
        index.setdefault(folded(line[column]), []).append(line)
    return lambda row: index.get(folded(wanted(row) or ""), []) if wanted(row) else []


def as_number(cell: str) -> float | None:
    """Return the number in a cell, or None."""
    try:
        return float(cell.strip().replace(",", "."))
    except ValueError:
        return None
