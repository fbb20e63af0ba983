"""``python -m grader term``: several assignments in one gradebook, and a page about the term.

A student is the same in two assignments if the platform's number is, or what a roster says of
both, or the key.  Moodle numbers participants anew in each assignment, and some layouts have no
numbers; there, a name that only one student has in each assignment counts, and the remarks say
so.  Whatever is not that clear stays apart, with a remark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.classroom.names import first_last, folded
from grader.classroom.pages import ExerciseFigures, figures, page
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

#: Platforms that number a student anew in each assignment.
_CHANGING_NUMBERS = frozenset({"moodle"})

#: Mistakes and exercises that the page lists.
_MOST_MISTAKES, _HARDEST = 25, 15


@dataclass
class TermStudent:
    """A student over the term.

    Attributes:
        rows: the submissions, by position of the assignment.
        remarks: what is not sure about them.
    """

    rows: dict[int, SubmissionRow] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

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


def _numbers(row: SubmissionRow) -> set[str]:
    known = {row.number} if row.platform not in _CHANGING_NUMBERS else set()
    return {folded(one) for one in (*known, *row.identities) if one}


def joined(assignments: Sequence[ClassResults], titles: Sequence[str]) -> Term:
    """Return assignments with the rows of each student together."""
    students: list[TermStudent] = []
    remarks: list[str] = []
    for position, (results, title) in enumerate(zip(assignments, titles, strict=True)):
        names = Counter(first_last(row.student) for row in results.rows)
        claims: dict[int, list[tuple[SubmissionRow, str]]] = defaultdict(list)
        fresh: list[SubmissionRow] = []
        for row in results.rows:
            found, doubt = _student_of_row(row, students, names)
            if found is None:
                fresh.append(row)
                if doubt:
                    remarks.append(f"{title}: {row.student} ({row.key}) {doubt}")
            else:
                claims[found].append((row, doubt))
        for index, rows in claims.items():
            if len(rows) > 1:
                listed = ", ".join(f"{row.student} ({row.key})" for row, _ in rows)
                remarks.append(
                    f"{title}: {len(rows)} submissions fit {students[index].last.student}, and are"
                    f" kept apart: {listed}"
                )
                fresh += [row for row, _ in rows]
                continue
            ((row, doubt),) = rows
            if doubt:
                remarks.append(f"{title}: {row.student} ({row.key}) {doubt}")
                students[index].remarks.append(f"{title}: {doubt}")
            students[index].rows[position] = row
        if position:
            remarks += [
                f"{title}: {row.student} ({row.key}) is in no assignment before" for row in fresh
            ]
        students += [TermStudent({position: row}) for row in fresh]
    for student in students:
        missing = [titles[i] for i in range(len(assignments)) if i not in student.rows]
        if missing:
            words = f"nothing of {student.last.student} in {', '.join(missing)}: 0 points"
            remarks.append(words)
            student.remarks.append(f"nothing in {', '.join(missing)}")
    students.sort(key=lambda one: (one.last.student.casefold(), one.last.key))
    return Term(tuple(assignments), tuple(titles), tuple(students), tuple(remarks))


def _student_of_row(
    row: SubmissionRow, students: Sequence[TermStudent], names: Counter[str]
) -> tuple[int | None, str]:
    """Return the index of the student whose row it is, and what is doubtful about that."""

    def fitting(fits: Callable[[SubmissionRow], bool]) -> list[int]:
        return [i for i, one in enumerate(students) if any(map(fits, one.rows.values()))]

    name, own = first_last(row.student), _numbers(row)
    by_number = fitting(lambda other: bool(own & _numbers(other)))
    if len(by_number) == 1:
        before = students[by_number[0]].last
        other = first_last(before.student) != name
        return by_number[0], f"has the number of {before.student}: same row" if other else ""
    if by_number:
        return None, f"has the number of {len(by_number)} students: not merged with any"
    by_key = fitting(lambda other: other.key == row.key)
    if by_key:
        return by_key[0], ""
    by_name = fitting(lambda other: first_last(other.student) == name)
    if not by_name:
        return None, ""
    alone = len(by_name) == 1 and names[name] == 1
    numbered = own and any(map(_numbers, students[by_name[0]].rows.values()))
    if alone and not numbered:
        return by_name[0], "is found by the name alone"
    listed = ", ".join(students[i].last.key for i in by_name)
    return None, f"has the name of {listed} and not the number: not merged"


# The files. -----------------------------------------------------------------------


def term(folders: Sequence[Path], to: Path) -> list[str]:
    """Write ``term.csv`` and ``term.html``, and return the remarks to print.

    Args:
        folders: the folders of results, in the order of the term.
        to: the folder to write them to.

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
    found = joined(assignments, titles)
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
                text(student.last.student),
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
