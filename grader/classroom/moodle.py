"""Grades for Moodle's assignments, as the grading worksheet that Moodle imports.

The form is that of "Download grading worksheet" and "Upload grading worksheet"
(https://github.com/moodle/moodle, ``mod/assign/gradingtable.php`` and
``mod/assign/feedback/offline/importgradeslib.php``): Moodle reads the participant's number at the
end of Identifier, the Grade, which may not be above the assignment's maximum, "Last modified
(grade)", which it compares with the time of the grade that it has, and Feedback comments.  The
columns' names are in the site's language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from grader.classroom.gradebooks import (
    FilledGradebook,
    Finder,
    GradebookFile,
    LeftOut,
    as_number,
    finder,
    match,
)
from grader.classroom.names import first_last, folded
from grader.classroom.results import (
    ClassResults,
    GradingState,
    SubmissionRow,
    as_shown,
    number,
    table,
    text,
)
from grader.report.summary import look_of
from headcount.core.errors import RequestError

__all__ = ["moodle"]

COLUMNS = (
    *("Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade"),
    *("Grade can be changed", "Last modified (submission)", "Last modified (grade)"),
    "Feedback comments",
)

#: Moodle shows two decimals, unless the site's administrator has chosen otherwise.
_DECIMALS = 2

_ID, _NAME, _ADDRESS, _GRADE, _MOST, _MARKED, _COMMENTS = (
    COLUMNS[position] for position in (0, 1, 2, 4, 5, 8, 9)
)


def moodle(
    results: ClassResults, worksheet: Path | None = None, force: bool = False
) -> FilledGradebook:
    """Return the grades of a class as a worksheet for Moodle.

    Args:
        results: the class.
        worksheet: the one that Moodle has exported for this assignment.  Its rows and columns
            stay, and grades and comments are filled in.  Without it, a new one is made.
        force: whether grades in it may be replaced by others.

    Raises:
        RequestError: the file is no worksheet of Moodle's, is that of another assignment, or holds
            other grades and nothing shows that it is of this one.
    """
    return _fresh(results) if worksheet is None else _fill(results, worksheet, force)


def _ungraded(results: ClassResults, row: SubmissionRow) -> str:
    if row.state == GradingState.NOTHING:
        return "nothing was handed in"
    return results.ungraded(row)


def _fresh(results: ClassResults) -> FilledGradebook:
    rows: list[tuple[str, ...]] = [COLUMNS]
    left_out = []
    for row in results.rows:
        if row.platform != "moodle" or not row.number:
            left_out.append(LeftOut(row, "its number in Moodle is not known; give --gradebook"))
            continue
        if reason := _ungraded(results, row):
            left_out.append(LeftOut(row, reason))
        grade = "" if reason else _points(results.share(row) * results.points)
        known = (f"Participant {row.number}", text(row.student), text(row.email), "", grade)
        rows.append(
            (*known, number(results.points), "", "", "", "" if reason else _comment(results, row))
        )
    return FilledGradebook(table(rows, bom=True), tuple(left_out))


def _fill(results: ClassResults, path: Path, force: bool) -> FilledGradebook:
    file = GradebookFile(path)
    head = file.rows[0] if file.rows else []
    absent = [name for name in (_ID, _GRADE, _MARKED) if name not in head]
    if absent:
        raise RequestError(
            f"{path} is no grading worksheet of Moodle's in English: it has no column"
            f" {' or '.join(absent)}, but {', '.join(head[:6]) or 'nothing'}; choose English in"
            " Moodle, and in the assignment Download grading worksheet (it is there if Offline"
            " grading worksheet is among the feedback types)"
        )
    lines = [line + [""] * (len(head) - len(line)) for line in file.rows[1:]]
    file.rows[1:] = lines
    matched, left_out, unsure = match(
        results.rows, _by_identity(head, lines), _by_name(head, lines)
    )
    own = _require_own_worksheet(path, head, matched, force)
    grade, most = head.index(_GRADE), head.index(_MOST) if _MOST in head else None
    possible = as_number(lines[0][most]) if most is not None and lines else None
    replaced = []
    for line, row in matched:
        if reason := _ungraded(results, row):
            left_out.append(LeftOut(row, reason))
            continue
        before, now = (
            line[grade].strip(),
            _points(results.share(row) * (possible or results.points)),
        )
        if before and as_number(before) != as_number(now):
            replaced.append(f"{row.student} {before} → {now}")
        line[grade] = now
        if _COMMENTS in head:
            line[head.index(_COMMENTS)] = _comment(results, row)
    if replaced and not own and not force:
        raise RequestError(
            f"{path} has other grades ({', '.join(replaced[:3])}), and does not say of which"
            " assignment they are; if they are of this one, --force"
        )
    order = {row.key: position for position, row in enumerate(results.rows)}
    left_out.sort(key=lambda item: order[item.row.key])
    return FilledGradebook(
        file.written(),
        tuple(left_out),
        tuple(row for _, row in matched if row.key in unsure),
        possible if possible not in (None, results.points) else None,
        tuple(replaced),
    )


def _require_own_worksheet(
    path: Path, head: list[str], matched: list[tuple[list[str], SubmissionRow]], force: bool
) -> bool:
    """Check that a worksheet is not another assignment's, as far as participants' numbers show it.

    Moodle gives everybody another number in each assignment
    (https://github.com/moodle/moodle, ``assign_user_mapping`` in ``mod/assign/db/install.xml``).

    Returns:
        Whether the numbers show that it is this assignment's.
    """
    known = [
        (row, _participant(line[head.index(_ID)]))
        for line, row in matched
        if row.platform == "moodle" and row.number
    ]
    own = any(there == row.number for row, there in known)
    if known and not own and not force:
        row, there = known[0]
        raise RequestError(
            f"{path} is the worksheet of another assignment: {row.student} is participant {there}"
            f" there, and {row.number} in what was handed in; download the worksheet of this"
            " assignment (or fill in that one nevertheless: --force)"
        )
    return own


def _participant(identifier: str) -> str:
    """Return the number at the end of an identifier, or an empty string."""
    found = re.search(r"\d+\Z", identifier.strip())
    return found[0] if found else ""


def _points(score: float) -> str:
    return number(round(score, _DECIMALS))


def _by_identity(head: list[str], lines: list[list[str]]) -> Iterator[Finder]:
    """Yield ways to find a student's line by identity, the surest first."""
    own: dict[str, list[list[str]]] = {}
    for line in lines:
        if participant := _participant(line[head.index(_ID)]):
            own.setdefault(participant, []).append(line)
    yield lambda row: own.get(row.number or "", []) if row.platform == "moodle" else []
    if _ADDRESS in head:
        yield finder(lines, head.index(_ADDRESS), lambda row: row.email)


def _by_name(head: list[str], lines: list[list[str]]) -> Iterator[Finder]:
    if _NAME in head:
        column = head.index(_NAME)
        yield lambda row: [
            line for line in lines if folded(line[column]) == first_last(row.student)
        ]


def _comment(results: ClassResults, row: SubmissionRow) -> str:
    """Return the points of each exercise, for the student; with what was decided by hand."""
    parts = []
    for asked in results.asked:
        verdict = row.by_name.get(asked.name)
        if not row.is_open(asked.name):
            continue
        if verdict is None:
            parts.append(f"{asked.name}: 0 of {number(asked.points)}, not handed in")
            continue
        seen = as_shown(verdict, results.assignment.shows)
        word = seen.diagnosis.words if seen.diagnosis else look_of(seen).word
        parts.append(f"{asked.name}: {number(seen.score)} of {number(seen.max_score)}, {word}")
    parts += row.decided
    if row.lateness is not None:
        parts.append(row.lateness.words)
    return text("; ".join(parts))
