"""``python -m grader export``: results as other systems take them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from grader.classroom.canvas import canvas
from grader.classroom.gradescope import autograder
from grader.classroom.pages import write_gradescope
from grader.classroom.results import (
    ClassResults,
    SubmissionRow,
    class_results,
    gradebook,
    number,
    table,
    text,
)
from grader.classroom.store import Store
from grader.core.errors import RequestError
from grader.core.verdict import Status
from grader.report.summary import visible

__all__ = ["COLUMNS", "FORMATS", "export", "nbgrader"]


def _csv(results: ClassResults, to: Path, book: Path | None) -> list[str]:
    _write(to, gradebook(results))
    return _without_grade(results)


def _canvas(results: ClassResults, to: Path, book: Path | None) -> list[str]:
    made = canvas(results, book)
    _write(to, made.data)
    said = [f"no grade for {one.row.student}: {one.reason}" for one in made.left_out]
    said += [f"found by the name alone: {row.student}" for row in made.by_name]
    if made.scaled is not None:
        said.append(f"a full score is {made.scaled:g} in Canvas; scores are in proportion")
    return said


def _gradescope(results: ClassResults, to: Path, book: Path | None) -> list[str]:
    left_out = write_gradescope(results, to)
    _write(to / "autograder.zip", autograder())
    reasons = [(row, row.fault or results.ungraded(row)) for row in left_out]
    return [f"no results for {row.student}: {reason}" for row, reason in reasons]


def _nbgrader(results: ClassResults, to: Path, book: Path | None) -> list[str]:
    _write(to, nbgrader(results))
    return _without_grade(results)


def _without_grade(results: ClassResults) -> list[str]:
    reasons = [(row, results.ungraded(row)) for row in results.rows]
    return [f"no grade for {row.student}: {reason}" for row, reason in reasons if reason]


def _unjudged(results: ClassResults) -> list[str]:
    """A sentence for every exercise that could not be judged for everybody."""
    said = []
    for asked in results.asked:
        verdicts = [row.by_name[asked.name] for row in results.rows if asked.name in row.by_name]
        skipped = [one for one in verdicts if one.status is Status.SKIPPED]
        if skipped:
            count = f"{len(skipped)} submission{'s' if len(skipped) > 1 else ''}"
            said.append(
                f"{asked.name} could not be judged for {count} ({skipped[0].message}); it does not"
                " count there, neither for nor against"
            )
    return said


FORMATS: dict[str, Callable[[ClassResults, Path, Path | None], list[str]]] = {
    "csv": _csv,
    "canvas": _canvas,
    "gradescope": _gradescope,
    "nbgrader": _nbgrader,
}


def export(folder: Path, form: str, to: Path, book: Path | None = None) -> list[str]:
    """Write results in a format; what there is to say about it.

    Args:
        folder: of the results.
        form: one of :data:`FORMATS`.
        to: a file; for Gradescope, a folder.
        book: for Canvas, an exported gradebook to fill in.

    Raises:
        RequestError: there are no results, or the target cannot be written.
    """
    if book is not None and form != "canvas":
        raise RequestError("--gradebook is for --format canvas")
    with Store(folder, readonly=True) as store:
        results = class_results(store)
    try:
        said = FORMATS[form](results, to, book) + _unjudged(results)
    except OSError as error:
        raise RequestError(f"{error.filename or to}: {error.strerror}") from None
    return [visible(line) for line in said]


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# nbgrader. ------------------------------------------------------------------------
#
# The gradebook as ``nbgrader export`` writes it.
#
# Columns and their order are those of ``CsvExportPlugin``
# (https://github.com/jupyter/nbgrader/blob/main/nbgrader/plugins/export.py),
# described at https://nbgrader.readthedocs.io/en/stable/user_guide/creating_and_grading_assignments.html.
# There, too, a value that is not known is an empty cell.

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
