"""``feedback/<key>.html``: what a student gets to see, and nothing of anybody else's.

Seeds are not on it.  The inputs that a submission is judged with are drawn from
the class's secret and the submission's key, so a resubmission meets the same
ones again: whoever knew the seed could have ``check --seed`` show all of them
before the deadline and hand in a table of answers.  What the page does show is
the first case that failed, since that is what a student learns from.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from grader.classroom.outputs.class_page import MARKS, WORDS
from grader.classroom.outputs.figures import changes, outcome
from grader.classroom.outputs.pages import page
from grader.classroom.outputs.results import ClassResults, Row
from grader.core.verdict import CaseVerdict, Diagnosis, Status

__all__ = ["feedback"]


def feedback(results: ClassResults, row: Row) -> str:
    """One student's page, which needs nothing beside it."""
    before = {change.now.name: change.before for change in changes(row)}
    counts = Counter(outcome(verdict) for verdict in row.exercises)
    missing = [asked for asked in results.asked if asked.name not in row.by_name]
    counts["empty"] += len(missing)
    # nothing is asked of whom the grader failed altogether
    asked_of = () if row.fault and not row.exercises else results.asked
    return page(
        "feedback.html.j2",
        results=results,
        row=row,
        outcomes=[(kind, counts[kind]) for kind in MARKS if counts[kind]],
        chapters=[
            (
                chapter,
                [(a, row.by_name.get(a.name), before.get(a.name)) for a in group],
            )
            for chapter, group in groupby(asked_of, key=lambda asked: asked.chapter)
        ],
        case_kind=_kind,
        marks=MARKS,
        words=WORDS,
    )


def _kind(case: CaseVerdict) -> str:
    if case.status is Status.FAILED and case.diagnosis in (Diagnosis.DEADLOCK, Diagnosis.TIMEOUT):
        return "hung"
    return str(case.status)
