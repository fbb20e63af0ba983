"""``python -m grader mark``: decide about a grade by hand, undo a decision, list all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.classroom.decisions import (
    Decision,
    DecisionKind,
    by_student,
    find_student,
    login_name,
    nobody,
    now,
)
from grader.classroom.results import ClassResults, SubmissionRow, class_results
from grader.classroom.store import Store, StoredSubmission, StoreError
from grader.errors import UnknownExercise
from headcount.core.errors import RequestError
from headcount.report import visible


@dataclass(frozen=True)
class MarkRequest:
    """What the command line asks for.

    Attributes:
        student: a key, number, address or name; empty if nothing is said of a student.
        exercise: an exercise; empty if it is about the whole assignment.
        points: the points that the exercise is to earn.
        extend: the day or time by which the student may hand in.
        excuse: whether the student is excused.
        undo: the number of a decision that is to be undone.
        why: the reason.
        by: who decides; empty for the name of the user.
        ahead: whether the student may have handed in nothing yet.
    """

    student: str = ""
    exercise: str = ""
    points: float | None = None
    extend: str = ""
    excuse: bool = False
    undo: int | None = None
    why: str = ""
    by: str = ""
    ahead: bool = False


def mark(folder: Path, request: MarkRequest) -> int:
    """Keep a decision, and write the pages anew; or list the decisions, if none is asked for.

    Raises:
        RequestError: the request is wrong; nothing is changed.
        StoreError: the decision cannot be kept; or it is kept, and the pages cannot be written.
    """
    asked = [
        request.points is not None,
        bool(request.extend),
        request.excuse,
        request.undo is not None,
    ]
    if sum(asked) > 1:
        raise RequestError("one decision at a time: --points, --extend, --excuse or --undo")
    if not any(asked):
        if request.why:
            raise RequestError("what is decided? --points P, --extend DATE, --excuse or --undo N")
        return _list(folder, request)
    if request.undo is None and not request.student:
        raise RequestError("whom is it about? name a student: by key, number, address or name")
    if request.undo is None and not request.why.strip():
        raise RequestError('a decision needs a reason, which the student sees: --why "…"')
    with Store(folder, readonly=True):
        pass  # says that there are no results, before a store is made
    by = request.by or login_name()
    with Store(folder) as store:
        results = class_results(store)
        if request.undo is not None:
            done = store.decisions.undo(request.undo, by, request.why)
            said = f"decision {done.number} is undone: {done.what}"
        else:
            decision = store.decisions.add(_decision(results, store.entries(), request, by))
            said = (
                f"decision {decision.number}: {_student_text(decision, results)}: {decision.what}"
            )
        from grader.classroom.command import report  # it knows every page

        try:
            report(store, folder)
        except StoreError as error:
            raise StoreError(f"{said}; that is kept, but {error}") from None
    print(visible(said))
    return 0


def _student_text(decision: Decision, results: ClassResults) -> str:
    names = {row.key: row.student for row in results.rows}
    return names.get(decision.student, decision.student)


def _decision(
    results: ClassResults, entries: list[StoredSubmission], request: MarkRequest, by: str
) -> Decision:
    """Return the decision that is asked for.

    Raises:
        RequestError: it cannot be made; the message says why.
    """
    student = find_student(request.student, entries)
    if student is None and not request.ahead:
        hint = "; if nothing was handed in yet, add --ahead" if not request.points else ""
        raise RequestError(nobody(request.student, entries, "these results") + hint)
    row = next((r for r in results.rows if student is not None and r.key == student.key), None)
    decision = Decision(
        DecisionKind.EXCUSE,
        request.student if row is None else row.key,
        request.exercise,
        request.why.strip(),
        by,
        now(),
    )
    if request.extend:
        if request.exercise:
            raise RequestError(
                "an extension is for the whole assignment, not for one exercise; leave"
                f" {request.exercise} out"
            )
        until, due = _moment(results, request.extend), results.assignment.due
        if due is not None and until < due:
            raise RequestError(
                f"{until:%Y-%m-%d %H:%M} is before the deadline of the class, {due:%Y-%m-%d %H:%M};"
                " an extension ends after it"
            )
        return replace(decision, kind=DecisionKind.EXTENSION, until=until.isoformat())
    if request.exercise:
        names = [asked.name for asked in results.asked]
        if request.exercise not in names:
            near = str(UnknownExercise(request.exercise, names))
            mend = near.rpartition("; ")[2] if "did you mean" in near else ", ".join(names)
            raise RequestError(f"{request.exercise!r} is not in this assignment; {mend}")
    if request.points is None:
        return decision
    if not request.exercise:
        raise RequestError("--points are for an exercise; name it after the student")
    return _points(results, row, decision, request.points)


def _points(
    results: ClassResults, row: SubmissionRow | None, decision: Decision, points: float
) -> Decision:
    worth = next(a.points for a in results.asked if a.name == decision.exercise)
    if not 0 <= points <= worth:
        raise RequestError(f"{decision.exercise} is worth {worth:g}, so it earns 0 to {worth:g}")
    verdict = None if row is None else row.by_name.get(decision.exercise)
    judged = None if verdict is None else verdict.score
    return replace(decision, kind=DecisionKind.POINTS, points=points, of=worth, judged=judged)


def _moment(results: ClassResults, text: str) -> datetime:
    """Return the time that is meant: a day means its end, in the assignment's time zone."""
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise RequestError(
            f"{text!r} is no date; write it as 2026-11-22, or with a time as '2026-11-22 18:00'"
        ) from None
    if len(text.strip()) == len("2026-11-22"):
        moment = datetime.combine(moment, time(23, 59, 59))
    return results.assignment.aware(moment)


# The list. ------------------------------------------------------------------------


def _list(folder: Path, request: MarkRequest) -> int:
    with Store(folder, readonly=True) as store:
        results, entries, decisions = class_results(store), store.entries(), store.decisions.all()
    if request.student:
        student = find_student(request.student, entries)
        if student is None and not any(one.student == request.student for one in decisions):
            raise RequestError(nobody(request.student, entries, "these results"))
        wanted = {request.student} | ({student.key} if student is not None else set())
        decisions = [one for one in decisions if one.student in wanted]
    if not decisions:
        print("nothing has been decided by hand")
        return 0
    holding, not_here = by_student(decisions, entries)
    holds = {one.number for found in holding.values() for one in found.all()}
    rows = {row.key: row for row in results.rows}
    waiting = {one.number for one in not_here}
    table = Table.grid(padding=(0, 2))
    for one in decisions:
        row = rows.get(one.student)
        verdict = None if row is None else row.by_name.get(one.exercise)
        words = one.words(None if verdict is None else verdict.score)
        if one.undone_at:
            words += f" — undone by {one.undone_by} on {one.undone_at[:10]}"
            words += f": {one.undone_why}" if one.undone_why else ""
        elif one.number in waiting:
            words += " — nobody of that name or number has handed in anything"
        elif one.number not in holds:
            words += " — replaced by a later decision"
        table.add_row(
            Text(str(one.number), justify="right"),
            Text(visible(_student_text(one, results))),
            Text(visible(words)),
        )
    Console(highlight=False).print(table)
    return 0
