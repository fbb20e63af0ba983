"""``gradebook.csv``: one row per submission, and one column per exercise."""

from __future__ import annotations

from grader.classroom.outputs.cells import number, table, text
from grader.classroom.outputs.results import ClassResults, Row
from grader.core.verdict import Status

__all__ = ["COLUMNS", "gradebook"]

#: Before the exercises.
COLUMNS = ("student", "key", "email", "number", "score", "max_score", "status", "notes")


def gradebook(results: ClassResults) -> bytes:
    """The file.

    No row is ever left out.  What the grader failed at has the word ``error``
    instead of points, and what could not be judged here ``skipped``, which
    ``max_score`` does not count; a cell is empty where nothing was handed in.
    A score that is not final is an empty cell.

    The file begins with a byte order mark: people open it in Excel, which
    without one takes it for the machine's old code page and garbles every name
    that is not ASCII.  Programs read it as ``utf-8-sig``.
    """
    head = [*COLUMNS, *(text(asked.name) for asked in results.asked)]
    return table([head, *(_record(results, row) for row in results.rows)], bom=True)


def _record(results: ClassResults, row: Row) -> list[str]:
    notes = list(row.notes)
    if row.unsafe:
        notes.insert(0, "graded without a sandbox")
    if row.fault:
        notes.insert(0, f"the grader failed: {row.fault}")
    return [
        text(row.student),
        text(row.key),
        text(row.email),
        text(row.number),
        "" if results.ungraded(row) else number(row.score),
        number(results.points_of(row)),
        row.standing,
        text("; ".join(notes)),
        *(_cell(row, asked.name) for asked in results.asked),
    ]


def _cell(row: Row, name: str) -> str:
    verdict = row.by_name.get(name)
    if verdict is None:
        return ""
    if verdict.status in (Status.ERROR, Status.SKIPPED):
        return str(verdict.status)
    return number(verdict.score)
