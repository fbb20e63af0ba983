"""The store as the data that every output is made from."""

from __future__ import annotations

from datetime import datetime, timezone

from grader.classroom.outputs.results import ClassResults, RequestedExercise, SubmissionRow
from grader.classroom.store import Store, StoredSubmission
from grader.core.verdict import ExerciseVerdict, Status

__all__ = ["class_results"]


def class_results(store: Store) -> ClassResults:
    """A class as far as it has been graded.

    The course is what somebody handed in: exercises that nobody was asked for
    are nobody's lost points.
    """
    entries = store.entries()
    wanted = {name for entry in entries for name in entry.exercises}
    course = {
        name: RequestedExercise(name, chapter, points) for name, chapter, points in store.course
    }
    rows = tuple(_row(store, course, entry) for entry in entries)
    asked = tuple(one for name, one in course.items() if name in wanted)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return ClassResults(store.title, now, rows, asked)


def _row(
    store: Store, course: dict[str, RequestedExercise], entry: StoredSubmission
) -> SubmissionRow:
    found = store.verdicts(entry.key)
    return SubmissionRow(
        key=entry.key,
        student=entry.student,
        email=entry.email,
        number=entry.number,
        exercises=tuple(
            # a verdict that failed is false, and one all the same
            found[name] if name in found else _unjudged(course, name, entry.fault)
            for name in entry.exercises
        ),
        earlier=store.earlier(entry.key),
        notes=(*entry.problems, *entry.found),
        fault=entry.fault,
        unsafe=store.is_unsafe(entry.key),
    )


def _unjudged(course: dict[str, RequestedExercise], name: str, fault: str) -> ExerciseVerdict:
    """An exercise that is due and has no verdict: never a 0 in silence."""
    asked = course.get(name, RequestedExercise(name, "", 0.0))  # one that the course had earlier
    message = f"not judged: {fault}" if fault else "not judged yet; grade again"
    return ExerciseVerdict(name, asked.chapter, Status.ERROR, 0.0, asked.points, message=message)
