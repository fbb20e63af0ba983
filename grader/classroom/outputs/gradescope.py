"""Results in the form that Gradescope's autograders write.

https://gradescope-autograders.readthedocs.io/en/latest/specs/ describes
``results.json``.  Its ``output`` is shown to the student, as plain text
(``text``: no HTML, Markdown or ANSI is interpreted); seeds are not in it, for
the reason that :mod:`grader.classroom.outputs.files` gives.
"""

from __future__ import annotations

import json
from typing import Any

from grader.classroom.outputs.results import ClassResults, SubmissionRow
from grader.core import __version__
from grader.core.verdict import ExerciseVerdict, Status
from grader.report.summary import visible
from grader.report.text import exercise_report, plain

__all__ = ["VISIBILITIES", "gradescope", "to_json"]

#: When students see a test, or what was printed.
VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")


def gradescope(
    results: ClassResults, row: SubmissionRow, visibility: str = "visible"
) -> dict[str, Any]:
    """One student's ``results.json``.

    What the grader failed at, or could not judge, is a test without points:
    it says so, and is never 0 points in silence.  Gradescope has one maximum
    for everybody, so the score is the student's share of all points.

    Args:
        results: the class.
        row: of it.
        visibility: when students see the tests, one of :data:`VISIBILITIES`.
    """
    if visibility not in VISIBILITIES:
        raise ValueError(f"visibility is one of {', '.join(VISIBILITIES)}, not {visibility!r}")
    chapters: dict[str, int] = {}
    tests = []
    for asked in results.asked:
        chapters[asked.chapter] = chapters.get(asked.chapter, 0) + 1
        number = f"{asked.chapter.partition('_')[0]}.{chapters[asked.chapter]}"
        verdict = row.by_name.get(asked.name)
        test: dict[str, Any] = {"name": asked.name, "number": number, "tags": [asked.chapter]}
        if verdict is None:
            test |= _scored(0.0, asked.points, "failed") | {"output": "not handed in"}
        else:
            test |= _judged(verdict)
        tests.append(test | {"output_format": "text", "visibility": visibility})
    return {
        "score": round(results.share(row) * results.points, 3),
        "output": "\n".join(_remarks(row)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": visibility,
        # what the grader prints is for the instructor
        "stdout_visibility": "hidden",
        "execution_time": round(row.seconds, 3),
        "tests": tests,
        "extra_data": {
            "grader_version": __version__,
            "status": row.standing,
            "unsafe": row.unsafe,
            "max_score": results.points_of(row),
        },
    }


def to_json(result: dict[str, Any]) -> str:
    """The text of the file; lone surrogates, which have no UTF-8, are escaped."""
    return json.dumps(result, ensure_ascii=True, indent=1)


def _judged(verdict: ExerciseVerdict) -> dict[str, Any]:
    found: dict[str, Any] = {"output": plain(exercise_report(verdict))}
    if verdict.diagnosis:
        found["extra_data"] = {"diagnosis": verdict.diagnosis.value}
    if verdict.status in (Status.PASSED, Status.FAILED):
        found |= _scored(verdict.score, verdict.max_score, verdict.status.value)
    return found


def _scored(score: float, points: float, status: str) -> dict[str, Any]:
    return {"score": score, "max_score": points, "status": status}


def _remarks(row: SubmissionRow) -> list[str]:
    found = []
    if row.fault:
        found.append(
            "The grader itself failed on this submission, so this is not your grade:"
            f" {visible(row.fault)}"
        )
    failed = [v.name for v in row.exercises if v.status is Status.ERROR]
    if failed:
        found.append(
            f"The grader itself failed on {', '.join(failed)}; that is no fault of yours, and the"
            " score is not final."
        )
    skipped = [v.name for v in row.exercises if v.status is Status.SKIPPED]
    if skipped:
        found.append(
            f"Not judged here, and not counted: {', '.join(skipped)}. The score is in proportion"
            " to the rest."
        )
    return found + [visible(note) for note in row.notes]
