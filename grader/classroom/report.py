"""The store as the data that every output is made from."""

from __future__ import annotations

from datetime import datetime, timezone

from grader.classroom.outputs.results import Asked, ClassResults, Row
from grader.classroom.store import Entry, Store
from grader.exercises import Catalogue
from grader.verdict import ExerciseVerdict, Status

__all__ = ["class_results"]


def class_results(store: Store, catalogue: Catalogue) -> ClassResults:
    """A class as far as it has been graded.

    The course is what somebody handed in: exercises that nobody was asked for
    are nobody's lost points.
    """
    entries = store.entries()
    wanted = {name for entry in entries for name in entry.exercises}
    course = tuple(
        Asked(exercise.name, exercise.chapter, exercise.points)
        for name, exercise in catalogue.items()
        if name in wanted
    )
    rows = tuple(_row(store, catalogue, entry) for entry in entries)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return ClassResults(store.title, now, rows, course)


def _row(store: Store, catalogue: Catalogue, entry: Entry) -> Row:
    found = store.verdicts(entry.key)
    return Row(
        key=entry.key,
        student=entry.student,
        email=entry.email,
        number=entry.number,
        exercises=tuple(
            # a verdict that failed is false, and one all the same
            found[name] if name in found else _unjudged(catalogue, name, entry.fault)
            for name in entry.exercises
        ),
        earlier=store.earlier(entry.key),
        notes=(*entry.problems, *entry.found),
        fault=entry.fault,
        unsafe=store.is_unsafe(entry.key),
    )


def _unjudged(catalogue: Catalogue, name: str, fault: str) -> ExerciseVerdict:
    """An exercise that is due and has no verdict: never a 0 in silence."""
    exercise = catalogue[name]
    message = f"not judged: {fault}" if fault else "not judged yet; grade again"
    return ExerciseVerdict(
        name, exercise.chapter, Status.ERROR, 0.0, exercise.points, message=message
    )
