"""Text of strangers in CSV files.

Excel, LibreOffice and Google Sheets take a cell that begins like a formula for
one, also when it is quoted; a student could call himself ``=HYPERLINK(…)`` and
have the instructor's gradebook sent away.  OWASP
(https://owasp.org/www-community/attacks/CSV_Injection) advises to quote every
cell and to put an apostrophe before those that begin with ``=``, ``+``, ``-``,
``@``, a tab, a carriage return or a line feed, which includes the full-width
forms of those signs.

Two things are added.  Spreadsheets skip leading spaces, so they are skipped here
as well.  And where a comma is the decimal sign, Excel takes semicolons for the
ends of cells: so a sign that follows a separator gets an apostrophe, too.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from grader.report.summary import visible

__all__ = ["number", "table", "text"]

_BEGINS = re.compile(r"\s*[=+\-@＝＋－＠]")

#: Where a cell could begin for a program that counts on another separator.
_BEGINS_WITHIN = re.compile(r"([;,|][\s\"']*)(?=[=+\-@＝＋－＠])")


def text(stranger: str | None) -> str:
    """A cell that a spreadsheet shows as it is.

    Control characters are spelled out, line breaks as well, so that a record is
    one line; so are characters that turn the reading direction, and lone
    surrogates, which have no UTF-8.
    """
    if not stranger:
        return ""
    plain = visible(stranger).replace("\n", "\\n").replace("\t", "\\t")
    plain = _BEGINS_WITHIN.sub(r"\1'", plain)
    return f"'{plain}" if _BEGINS.match(stranger) else plain


def number(value: float) -> str:
    """A number of points, to the thousandth."""
    return f"{round(value, 3):.10g}"


def table(
    rows: Iterable[Sequence[str]], *, delimiter: str = ",", newline: str = "\r\n", bom: bool = False
) -> bytes:
    """Rows of cells as a file: RFC 4180, in UTF-8."""
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=newline, quoting=csv.QUOTE_ALL)
    writer.writerows(rows)
    encoded = stream.getvalue().encode("utf-8", "backslashreplace")
    return b"\xef\xbb\xbf" + encoded if bom else encoded
