"""Text of strangers in CSV files.

Excel, LibreOffice and Google Sheets take a cell that begins like a formula for
one, also when it is quoted; a student could call himself ``=HYPERLINK(…)`` and
have the instructor's gradebook sent away.  OWASP
(https://owasp.org/www-community/attacks/CSV_Injection) advises to put an
apostrophe before cells that begin with ``=``, ``+``, ``-``, ``@``, a tab, a
carriage return or a line feed, which includes the full-width forms of those
signs.  Spreadsheets skip leading spaces, so they are skipped here as well.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from grader.reports.summary import visible

__all__ = ["number", "table", "text"]

_TRIGGERS = frozenset("=+-@＝＋－＠")


def text(stranger: str | None) -> str:
    """A cell that a spreadsheet shows as it is.

    Control characters are spelled out, line breaks as well, so that a record is
    one line; so are characters that turn the reading direction, and lone
    surrogates, which have no UTF-8.
    """
    if not stranger:
        return ""
    plain = visible(stranger).replace("\n", "\\n").replace("\t", "\\t")
    return f"'{plain}" if stranger.lstrip()[:1] in _TRIGGERS else plain


def number(value: float) -> str:
    """A number of points, to the thousandth."""
    return f"{round(value, 3):.10g}"


def table(
    rows: Iterable[Sequence[str]], *, delimiter: str = ",", newline: str = "\r\n", bom: bool = False
) -> bytes:
    """Rows of cells as a file: RFC 4180, in UTF-8."""
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator=newline).writerows(rows)
    encoded = stream.getvalue().encode("utf-8", "backslashreplace")
    return b"\xef\xbb\xbf" + encoded if bom else encoded
