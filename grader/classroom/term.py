"""``python -m grader term``: several assignments in one gradebook, and a page about the term.

:mod:`grader.classroom.people` says who is who; whatever is not clear stays apart, with a remark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.classroom.assignment import RosterStudent
from grader.classroom.pages import ExerciseFigures, figures, page
from grader.classroom.people import person, read_people, united
from grader.classroom.results import (
    ClassResults,
    GradingState,
    SubmissionRow,
    class_results,
    number,
    table,
    text,
)
from grader.classroom.store import Store
from grader.exercise.verdict import Status
from grader.files import replace_file
from headcount.core.errors import RequestError
from headcount.core.verdict import Diagnosis
from headcount.report import visible

#: Mistakes and exercises that the page lists.
_MOST_MISTAKES, _HARDEST = 25, 15


@dataclass
class TermStudent:
    """A student over the term.

    Attributes:
        rows: the submissions, by position of the assignment.
        name: the student's name; that of the last row, if no table of people says it.
        remarks: what is not sure about them.
    """

    rows: dict[int, SubmissionRow]
    name: str = ""
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = self.name or (self.last.student if self.rows else "")

    @property
    def last(self) -> SubmissionRow:
        """The row of the last assignment, which names the student."""
        return self.rows[max(self.rows)]

    def any(self, attribute: str) -> str:
        """Return a field of the newest row that has it, or an empty string."""
        values = (getattr(self.rows[i], attribute) for i in sorted(self.rows, reverse=True))
        return next((value for value in values if value), "")


@dataclass(frozen=True)
class FrequentMistake:
    """A mistake over the term.

    Attributes:
        diagnosis, hint: what it is.
        exercises: the exercises in which it was made, the most frequent first.
        by_assignment: number of students who made it, for each assignment.
        students: number of students who made it at all.
    """

    diagnosis: Diagnosis
    hint: str
    exercises: tuple[str, ...]
    by_assignment: tuple[int, ...]
    students: int


@dataclass(frozen=True)
class Term:
    """Several assignments, and who is who in them."""

    assignments: tuple[ClassResults, ...]
    titles: tuple[str, ...]
    students: tuple[TermStudent, ...]
    remarks: tuple[str, ...]

    def cell(self, student: TermStudent, position: int) -> str:
        """Return the points of an assignment; empty if they are not final."""
        row, results = student.rows.get(position), self.assignments[position]
        if row is None:
            return number(0.0)
        if row.state == GradingState.EXCUSED:
            return GradingState.EXCUSED
        return "" if results.ungraded(row) else number(row.score)

    def total(self, student: TermStudent) -> tuple[float, float] | None:
        """Return the points of all assignments, and those to earn; None if one is not final."""
        earned = most = 0.0
        for position, results in enumerate(self.assignments):
            row = student.rows.get(position)
            if row is None:
                most += results.points
            elif row.state != GradingState.EXCUSED:
                if results.ungraded(row):
                    return None
                earned += row.score
                most += results.points_of(row)
        return earned, most


# Who is who. ----------------------------------------------------------------------


def joined(
    assignments: Sequence[ClassResults],
    titles: Sequence[str],
    people: Sequence[RosterStudent] = (),
) -> Term:
    """Return assignments with the rows of each student together.

    Args:
        assignments: their results.
        titles: what each is called.
        people: the table of people, if there is one.
    """
    rows = [(at, row) for at, results in enumerate(assignments) for row in results.rows]
    own = [person(row) for _, row in rows]
    # folders have no numbers, and a key is of equal folders
    own = [
        replace(one, numbers=(*one.numbers, (row.key, "key")))
        for one, (_, row) in zip(own, rows, strict=True)
    ]
    before = len(people)
    found = united([*people, *own], [-1] * before + [at for at, _ in rows])

    def called(at: int) -> str:
        title, row = titles[rows[at - before][0]], rows[at - before][1]
        return f"{title}: {row.student} ({row.key})"

    students: list[TermStudent] = []
    remarks: list[str] = []
    for group in found.groups:
        own_rows = {rows[at - before][0]: rows[at - before][1] for at in group if at >= before}
        name = people[group[0]].name if group[0] < before else ""
        student = TermStudent(own_rows, name=name)
        missing = [titles[i] for i in range(len(assignments)) if i not in own_rows]
        if own_rows and people and not name:
            remarks.append(f"{called(group[0])} is not in the table of people")
        elif own_rows and 0 not in own_rows:
            remarks.append(
                f"{called(next(a for a in group if a >= before))} is in no assignment before"
            )
        if found.by_name & {*group}:
            last = called(group[-1])
            remarks.append(f"{last} is found by the name alone")
            student.remarks.append(f"{last.partition(': ')[0]}: is found by the name alone")
        if missing and own_rows:
            remarks.append(f"nothing of {student.name} in {', '.join(missing)}: 0 points")
            student.remarks.append(f"nothing in {', '.join(missing)}")
        students += [student] * bool(own_rows)
    for one, other in found.doubts:
        first = called(one) if one >= before else f"{people[one].name} of the table of people"
        remarks.append(
            f"{called(other)} may be {first}: not merged; a table of people says who is who, see"
            " `python -m grader people`"
        )
    students.sort(key=lambda one: (one.name.casefold(), one.last.key))
    return Term(tuple(assignments), tuple(titles), tuple(students), tuple(remarks))


# The files. -----------------------------------------------------------------------


def term(folders: Sequence[Path], to: Path, people: Path | None = None) -> list[str]:
    """Write ``term.csv`` and ``term.html``, and return the remarks to print.

    Args:
        folders: the folders of results, in the order of the term.
        to: the folder to write them to.
        people: the table of people, if there is one.

    Raises:
        RequestError: one of them has no results, or one is named twice.
    """
    if len({one.resolve() for one in folders}) < len(folders):
        raise RequestError("a folder of results is named twice")
    assignments = []
    for folder in folders:
        with Store(folder, readonly=True) as store:
            assignments.append(class_results(store))
    titles = [results.title for results in assignments]
    counts = Counter(titles)
    titles = [
        title if counts[title] == 1 else f"{title} ({folder})"
        for title, folder in zip(titles, folders, strict=True)
    ]
    found = joined(assignments, titles, read_people(people) if people is not None else ())
    try:
        replace_file(to / "term.csv", term_gradebook(found), 0o600)
        replace_file(to / "term.html", term_page(found).encode(), 0o600)
    except OSError as error:
        raise RequestError(f"{error.filename or to}: {error.strerror}") from None
    return [visible(line) for line in found.remarks]


def term_gradebook(found: Term) -> bytes:
    """Return ``term.csv``: one row for each student, one column for each assignment.

    The total is empty where an assignment's points are not final.
    """
    head = ["student", "number", "email", *map(text, found.titles), "total", "max_total", "notes"]
    rows = []
    for student in found.students:
        total = found.total(student)
        rows.append(
            [
                text(student.name),
                text(student.any("number")),
                text(student.any("email")),
                *(found.cell(student, i) for i in range(len(found.assignments))),
                *("" if total is None else number(value) for value in total or (0.0, 0.0)),
                text("; ".join([*student.remarks, *_decision_lines(found, student)])),
            ]
        )
    return table([head, *rows], bom=True)


def _decision_lines(found: Term, student: TermStudent) -> list[str]:
    return [f"{found.titles[i]}: {line}" for i, row in student.rows.items() for line in row.decided]


def frequent(found: Term) -> list[FrequentMistake]:
    """Return the mistakes that most students made, the most frequent first."""
    who: dict[tuple[Diagnosis, str], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    where: dict[tuple[Diagnosis, str], Counter[str]] = defaultdict(Counter)
    for index, student in enumerate(found.students):
        for position, row in student.rows.items():
            for verdict in row.exercises:
                if verdict.status is not Status.FAILED or verdict.diagnosis is None:
                    continue
                if verdict.nothing_done:
                    continue
                what = (verdict.diagnosis, verdict.hint)
                who[what][position].add(index)
                where[what][verdict.name] += 1
    mistakes = [
        FrequentMistake(
            diagnosis,
            hint,
            tuple(name for name, _ in where[diagnosis, hint].most_common()),
            tuple(len(made.get(i, ())) for i in range(len(found.assignments))),
            len(set().union(*made.values())),
        )
        for (diagnosis, hint), made in who.items()
    ]
    return sorted(mistakes, key=lambda one: (-one.students, one.diagnosis.value, one.hint))


def term_page(found: Term) -> str:
    """Return the page about the term, which needs no other file."""
    seen = [figures(results) for results in found.assignments]
    exercises: list[tuple[str, ExerciseFigures]] = [
        (title, one)
        for title, figure in zip(found.titles, seen, strict=True)
        for one in figure.exercises
        if one.rate is not None
    ]
    hardest = sorted(exercises, key=lambda item: (item[1].rate or 0.0, -item[1].judged))
    mistakes = frequent(found)
    return page(
        "term.html.j2",
        script="tables.js",
        term=found,
        figures=seen,
        hardest=hardest[:_HARDEST],
        mistakes=mistakes[:_MOST_MISTAKES],
        kinds=_kinds(mistakes, len(found.assignments)),
        shares=[_mean(found.assignments[i]) for i in range(len(found.assignments))],
    )


def _kinds(
    mistakes: Iterable[FrequentMistake], count: int
) -> list[tuple[Diagnosis, tuple[int, ...]]]:
    """Return how often each diagnosis was made in each assignment, the most frequent first."""
    sums: dict[Diagnosis, list[int]] = defaultdict(lambda: [0] * count)
    for one in mistakes:
        for position, made in enumerate(one.by_assignment):
            sums[one.diagnosis][position] += made
    ordered = sorted(sums.items(), key=lambda item: -sum(item[1]))
    return [(diagnosis, tuple(values)) for diagnosis, values in ordered]


def _mean(results: ClassResults) -> float | None:
    shares = [results.share(row) for row in results.rows if row.state == GradingState.GRADED]
    return sum(shares) / len(shares) if shares else None
