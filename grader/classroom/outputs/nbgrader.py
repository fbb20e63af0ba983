"""The gradebook as ``nbgrader export`` writes it.

Columns and their order are those of ``CsvExportPlugin``
(https://github.com/jupyter/nbgrader/blob/main/nbgrader/plugins/export.py),
described at https://nbgrader.readthedocs.io/en/stable/user_guide/creating_and_grading_assignments.html.
There, too, a value that is not known is an empty cell.
"""

from __future__ import annotations

from grader.classroom.outputs.results import ClassResults, SubmissionRow, number, table, text

__all__ = ["COLUMNS", "nbgrader"]

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
)


def nbgrader(results: ClassResults) -> bytes:
    """The file: one assignment, one row per submission.

    nbgrader gives 0 points to who handed in nothing, and so does this.  A score
    that is not final is an empty cell, and ``max_score`` leaves out what could
    not be judged here, as ``gradebook.csv`` does.
    """
    return table([COLUMNS, *(_record(results, row) for row in results.rows)], newline="\n")


def _record(results: ClassResults, row: SubmissionRow) -> list[str]:
    # only "Last, First" says which is which; names cannot be split by a program
    last, comma, first = row.student.partition(",")
    score = "" if results.ungraded(row) else number(row.score)
    return [
        text(results.title),
        "",
        "",
        text(row.number or row.email or row.key),
        text(last if comma else row.student),
        text(first.strip()),
        text(row.email),
        score,
        number(0.0),
        score,
        number(results.points_of(row)),
    ]
