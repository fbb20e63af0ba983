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
from pathlib import Path

from grader.classroom.gradebooks import (
    FilledGradebook,
    LeftOut,
    Table,
    as_number,
    points,
    ungraded,
)
from grader.classroom.people import lines_of
from grader.classroom.results import ClassResults, SubmissionRow, as_shown, number, table, text
from grader.report.summary import look_of
from headcount.core.errors import RequestError

COLUMNS = (
    *("Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade"),
    *("Grade can be changed", "Last modified (submission)", "Last modified (grade)"),
    "Feedback comments",
)

_ID, _, _, _, _GRADE, _MOST, _LOCKED, _, _MARKED, _COMMENTS = COLUMNS


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


def _fresh(results: ClassResults) -> FilledGradebook:
    rows: list[tuple[str, ...]] = [COLUMNS]
    left_out = []
    for row in results.rows:
        if row.platform != "moodle" or not row.number:
            left_out.append(LeftOut(row, "its number in Moodle is not known; give --gradebook"))
            continue
        if reason := ungraded(results, row):
            left_out.append(LeftOut(row, reason))
        grade = "" if reason else points(results.share(row) * results.points)
        known = (f"Participant {row.number}", text(row.student), text(row.email), "", grade)
        rows.append(
            (*known, number(results.points), "", "", "", "" if reason else _comment(results, row))
        )
    return FilledGradebook(table(rows, bom=True), tuple(left_out))


def _fill(results: ClassResults, path: Path, force: bool) -> FilledGradebook:
    file = Table(path, "a grading worksheet")
    columns = file.columns(COLUMNS)
    absent = [name for name in (_ID, _GRADE, _MARKED) if name not in columns]
    if absent:
        raise RequestError(
            f"{path} is no grading worksheet of Moodle's in English: it has no column"
            f" {' or '.join(absent)}, but {file.begins}; choose English in Moodle, and in the"
            " assignment Download grading worksheet (it is there if Offline grading worksheet is"
            " among the feedback types)"
        )
    if file.column("scale") is not None:
        mend = "set its grade in Moodle to Point, and download the worksheet again"
        raise RequestError(f"{path} is of an assignment with a scale, and without points; {mend}")
    lines = file.rows[1:]
    line_of, reasons, by_name = lines_of(results.rows, file, lines)
    matched = [(line_of[row.key], row) for row in results.rows if row.key in line_of]
    own = _require_own_worksheet(path, columns[_ID], matched, force)
    grade = columns[_GRADE]
    possible = as_number(lines[0][columns[_MOST]]) if _MOST in columns and lines else None
    left_out = []
    replaced, comments = [], []
    for row in results.rows:
        reason = reasons.get(row.key) or ungraded(results, row)
        line = line_of.get(row.key, [])
        if not reason and _LOCKED in columns and line[columns[_LOCKED]].strip().casefold() == "no":
            reason = "the worksheet says that the grade cannot be changed"
        if reason:
            left_out.append(LeftOut(row, reason))
            continue
        before = line[grade].strip()
        now = points(results.share(row) * (possible or results.points))
        if before and as_number(before) != as_number(now):
            replaced.append(f"{row.student} {before} → {now}")
        line[grade] = now
        if _COMMENTS in columns:
            # what somebody has written stays; the first line of an earlier export is ours
            there, ours = line[columns[_COMMENTS]].strip(), _comment(results, row)
            first, _, rest = there.partition("\n")
            is_ours = any(first.startswith(f"{text(asked.name)}: ") for asked in results.asked)
            line[columns[_COMMENTS]] = "\n".join(filter(None, (ours, rest if is_ours else there)))
            if is_ours and first != ours:
                comments.append(f"the comment on {row.student}")
    if replaced and not own and not force:
        raise RequestError(
            f"{path} has other grades ({', '.join(replaced[:3])}), and does not say of which"
            " assignment they are; if they are of this one, --force"
        )
    scaled = possible if possible not in (None, results.points) else None
    return FilledGradebook(file.written(), tuple(left_out), by_name, scaled, (*replaced, *comments))


def _require_own_worksheet(
    path: Path, column: int, matched: list[tuple[list[str], SubmissionRow]], force: bool
) -> bool:
    """Check that a worksheet is not another assignment's, as far as participants' numbers show it.

    Moodle gives everybody another number in each assignment
    (https://github.com/moodle/moodle, ``assign_user_mapping`` in ``mod/assign/db/install.xml``).

    Returns:
        Whether the numbers show that it is this assignment's.
    """
    known = [
        (row, _participant(line[column]))
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
