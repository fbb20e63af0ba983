"""Tables of people and grades: rosters, gradebooks and grading worksheets.

They are read here in whichever form they come: Excel's ``CSV UTF-8`` and its older ``CSV`` in
Windows-1252, its ``Unicode Text`` in UTF-16 with tabs, semicolons where the decimal mark is a
comma, and a first line ``sep=;``.  Those of a learning platform are filled in and written again.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from grader.classroom.results import ClassResults, GradingState, SubmissionRow, number, table
from headcount.core.errors import RequestError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

#: The first bytes of Excel's own files, of its newer and its older versions.
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")

#: A line for Excel, which no platform writes or reads.
_SEPARATOR = re.compile(r'"?sep=(.)"?[\r\n]+', re.IGNORECASE)

#: Numbers whose marks stand between thousands alone: ``1,000``; not ``0,125`` and not ``1.000``.
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:(?:,\d{3})+|(?:\.\d{3}){2,})")


class Table:
    """A table that somebody has exported, to be read, or filled in and written again.

    Attributes:
        path: the file.
        rows: its lines, the header first, each at least as long; they may be changed.

    Args:
        path: the file.
        what: what it is, for people, such as "a roster".

    Raises:
        RequestError: it cannot be read, or is no table.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        text = self._text(what)
        if found := _SEPARATOR.match(text):
            self._delimiter, text = found[1], text[found.end() :]
        else:
            # names in quotes may have commas
            header = re.sub('"[^"]*"', "", re.split(r"[\r\n]", text, maxsplit=1)[0])
            self._delimiter = max(",;\t", key=header.count)
        self._newline = "\r\n" if "\r\n" in text else "\n"
        stream = io.StringIO(text, newline="")
        try:
            lines = list(csv.reader(stream, delimiter=self._delimiter, strict=True))
        except csv.Error as error:
            raise RequestError(f"{path} is no CSV file: {error}") from None
        rows = [row for row in lines if row]
        # people leave lines empty above the header
        self.rows = list(dropwhile(lambda row: not any(map(str.strip, row)), rows)) or [[]]
        for row in self.rows:
            row += [""] * (len(self.head) - len(row))

    def _text(self, what: str) -> str:
        cannot = f"{self.path} cannot be read as {what}:"
        try:
            data = self.path.read_bytes()
        except OSError as error:
            raise RequestError(f"{cannot} {error.strerror}") from None
        if data.startswith(_WORKBOOKS):
            raise RequestError(f"{cannot} it is a workbook of Excel's; save it as 'CSV UTF-8'")
        encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "")
        #: whether it begins with a byte order mark when it is written, which is in UTF-8
        self._bom = bool(encoding)
        for name in (encoding,) if encoding else ("utf-8", "cp1252"):
            with contextlib.suppress(UnicodeDecodeError):
                text = data.decode(name)
                if "\0" not in text:
                    return text.lstrip("\r\n")
            self._bom = True  # Excel has written it, and reads UTF-8 only with one
        raise RequestError(f"{cannot} it is no text; save it as 'CSV UTF-8'")

    @property
    def head(self) -> list[str]:
        """The cells of the first line."""
        return self.rows[0]

    @property
    def begins(self) -> str:
        """The first of the columns, for a sentence that says what a file holds."""
        return ", ".join(self.head[:6]) or "nothing"

    def column(self, *names: str) -> int | None:
        """Return the position of the column that has one of some names, or None.

        Args:
            names: names that mean the same, in lower case.

        Raises:
            RequestError: there are two such columns.
        """
        found = [at for at, cell in enumerate(self.head) if cell.strip().casefold() in names]
        if len(found) > 1:
            one, other = (f"{self.head[at].strip()!r} (column {at + 1})" for at in found[:2])
            raise RequestError(
                f"{self.path} has two columns for the same thing, {one} and {other}; delete or"
                " rename the one that is not meant"
            )
        return found[0] if found else None

    def columns(self, names: Iterable[str]) -> dict[str, int]:
        """Return the positions of the columns that are there, see :meth:`column`."""
        found = {name: self.column(name.casefold()) for name in names}
        return {name: at for name, at in found.items() if at is not None}

    def written(self) -> bytes:
        """Return the table as it is now, in UTF-8."""
        return table(self.rows, delimiter=self._delimiter, newline=self._newline, bom=self._bom)


def as_number(cell: str) -> float | None:
    """Return the number in a cell, or None.

    The decimal mark may be a comma, and there may be marks or spaces between thousands; the last
    mark is the decimal one, as in Canvas.  ``1,000`` is a thousand: nobody writes three decimals.
    """
    plain = re.sub(r"(?<=\d)[\s'’](?=\d{3}(?!\d))", "", cell.strip())
    if _THOUSANDS.fullmatch(plain):
        plain = re.sub("[.,]", "", plain)
    *whole, last = re.split("[.,]", plain)
    try:
        value = float(f"{''.join(whole)}.{last}" if whole else last)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


# What was filled in. --------------------------------------------------------------


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
    left_out: tuple[LeftOut, ...]
    by_name: tuple[SubmissionRow, ...] = ()
    scaled: float | None = None
    replaced: tuple[str, ...] = ()


def ungraded(results: ClassResults, row: SubmissionRow) -> str:
    """Return why a submission has no grade to export, or an empty string."""
    if row.state == GradingState.NOTHING:
        return "nothing was handed in"
    return results.ungraded(row)


def points(score: float) -> str:
    """Return a score as platforms show and compare it, with two decimals."""
    return number(round(score, 2))
