"""``python -m grader export``: results in the forms that other systems take.

:data:`FORMATS` is the registry: the command line takes its choices and help from it, and
tests compare the documentation with it.  A new form is a function that makes its files, with a
line above it; a long one has a module of its own, as Canvas and Gradescope have.  The
functions import what they need when they are called, since every command reads the registry.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.core.errors import RequestError

if TYPE_CHECKING:
    from grader.classroom.gradebooks import FilledGradebook
    from grader.classroom.results import ClassResults


@dataclass(frozen=True)
class ExportedFiles:
    """The files of an export, and what an instructor should know about them.

    Attributes:
        data: the contents of the target, if it is one file.
        folder: the contents of its files by path, if it is a folder.
        remarks: sentences such as the reasons why students have no grade.
    """

    data: bytes = b""
    folder: dict[str, bytes] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ExportRequest:
    """What is asked of an export.

    Attributes:
        book: an exported gradebook to fill in, where the form takes one.
        column: the title of the assignment there, if the results have another one or none.
        force: whether grades there may be replaced that may be another assignment's.
    """

    book: Path | None = None
    column: str = ""
    force: bool = False


_Maker = Callable[["ClassResults", ExportRequest], ExportedFiles]


@dataclass(frozen=True)
class ExportFormat:
    """A form in which other systems take grades.

    Attributes:
        name: the word for ``--format``.
        system: the program that takes it, as people call it.
        target: an example for ``--to``; it ends in ``/`` if the target is a folder.
        content: a phrase that says what is written.
        make: the files for a class, as an :class:`ExportRequest` asks for them.
        fills_gradebook: whether it takes a gradebook.
    """

    name: str
    system: str
    target: str
    content: str
    make: _Maker
    fills_gradebook: bool = False

    @property
    def is_folder(self) -> bool:
        """Whether the target is a folder."""
        return self.target.endswith("/")


#: Every form, by its name.
FORMATS: dict[str, ExportFormat] = {}


def _form(
    name: str, system: str, target: str, content: str, fills_gradebook: bool = False
) -> Callable[[_Maker], _Maker]:
    """Return a decorator that puts a form into the registry."""

    def register(make: _Maker) -> _Maker:
        FORMATS[name] = ExportFormat(name, system, target, content, make, fills_gradebook)
        return make

    return register


@_form("csv", "spreadsheets", "grades.csv", "the gradebook that grade writes")
def _csv(results: ClassResults, request: ExportRequest) -> ExportedFiles:
    from grader.classroom.results import gradebook

    return ExportedFiles(gradebook(results), remarks=_without_grade(results))


@_form("canvas", "Canvas", "canvas.csv", "its gradebook, with this assignment's grades", True)
def _canvas(results: ClassResults, request: ExportRequest) -> ExportedFiles:
    from grader.classroom.canvas import canvas

    if request.book is not None and not (request.column or results.assignment.title):
        raise RequestError(
            "the results have no title, so their column in the gradebook is not known; say it:"
            " --title 'Week 2'"
        )
    made = canvas(results, request.book, request.column, request.force)
    return ExportedFiles(made.data, remarks=_gradebook_notes(made, "Canvas"))


@_form("moodle", "Moodle", "moodle.csv", "the grading worksheet of an assignment", True)
def _moodle(results: ClassResults, request: ExportRequest) -> ExportedFiles:
    from grader.classroom.moodle import moodle

    made = moodle(results, request.book, request.force)
    return ExportedFiles(made.data, remarks=_gradebook_notes(made, "Moodle"))


def _gradebook_notes(made: FilledGradebook, system: str) -> list[str]:
    """Return what an instructor should know about a gradebook that was filled in."""
    from grader.classroom.names import few

    remarks = [f"no grade for {one.row.student}: {one.reason}" for one in made.left_out]
    remarks += [f"found by the name alone: {row.student}" for row in made.by_name]
    if made.scaled is not None:
        remarks.append(f"a full score is {made.scaled:g} in {system}; scores are in proportion")
    if made.replaced:
        remarks.append(f"replaced: {few(made.replaced)}")
    return remarks


@_form(
    "gradescope",
    "Gradescope",
    "gradescope/",
    "results.json for each student, and an autograder to upload",
)
def _gradescope(results: ClassResults, request: ExportRequest) -> ExportedFiles:
    from grader.classroom.gradescope import autograder, gradescope, to_json

    files = {"autograder.zip": autograder(results.assignment)}
    remarks = []
    for row in results.rows:
        if reason := results.ungraded(row):
            # a file would have to say how many points were earned
            remarks.append(f"no results for {row.student}: {row.fault or reason}")
        else:
            files[f"{row.key}/results.json"] = to_json(gradescope(results, row)).encode()
    return ExportedFiles(folder=files, remarks=remarks)


@_form("nbgrader", "nbgrader", "nbgrader.csv", "the columns of nbgrader export")
def _nbgrader(results: ClassResults, request: ExportRequest) -> ExportedFiles:
    from grader.classroom.results import nbgrader_gradebook

    return ExportedFiles(nbgrader_gradebook(results), remarks=_without_grade(results))


@_form(
    "feedback",
    "students",
    "feedback.zip",
    "everybody's page, named as Canvas and Moodle take it back",
)
def _feedback(results: ClassResults, request: ExportRequest) -> ExportedFiles:
    from grader.classroom.pages import feedback_zip

    left_out = [row for row in results.rows if results.ungraded(row)]
    remarks = [f"no page for {row.student}: {results.ungraded(row)}" for row in left_out]
    return ExportedFiles(feedback_zip(results), remarks=remarks)


def _without_grade(results: ClassResults) -> list[str]:
    reasons = [(row, results.ungraded(row)) for row in results.rows]
    return [f"no grade for {row.student}: {reason}" for row, reason in reasons if reason]


def export(
    folder: Path,
    name: str,
    to: Path,
    book: Path | None = None,
    title: str = "",
    force: bool = False,
) -> list[str]:
    """Write results in a form, and return the remarks to print.

    Args:
        folder: the folder of results.
        name: one of :data:`FORMATS`.
        to: the file or folder to write.
        book: an exported gradebook to fill in, where the form takes one.
        title: the title of the assignment there, if it is not that of the results.
        force: whether grades there may be replaced that may be another assignment's.

    Raises:
        RequestError: there are no results, grades of another assignment would be replaced, or the
            target cannot be written.
    """
    from grader.classroom.results import class_results, doubts
    from grader.classroom.store import Store
    from grader.files import make_private_folder
    from headcount.report import visible

    form = FORMATS[name]
    if book is not None and not form.fills_gradebook:
        takers = " or ".join(form.name for form in FORMATS.values() if form.fills_gradebook)
        raise RequestError(f"--gradebook is for --format {takers}")
    with Store(folder, readonly=True) as store:
        results = class_results(store)
    column = title if title != results.assignment.title else ""
    if title:
        results = replace(results, title=title)
    try:
        made = form.make(results, ExportRequest(book, column, force))
        if form.is_folder:
            make_private_folder(to)
        for path, data in made.folder.items() if form.is_folder else [("", made.data)]:
            _write(to / path, data)
    except OSError as error:
        raise RequestError(f"{error.filename or to}: {error.strerror}") from None
    remarks = made.remarks + _unjudged(results)
    remarks += [f"{row.student}: {line}" for row in results.rows for line in row.decided]
    remarks += [f"guessed to be due: {guess}" for guess in doubts(results)]
    return [visible(line) for line in remarks]


def _write(path: Path, data: bytes) -> None:
    """Write a file as a whole; only its owner may read a new one, and an old one keeps its mode."""
    from grader.files import replace_file

    if path.exists() and not path.is_file():
        path.write_bytes(data)  # a pipe, or a terminal: nothing that could be lost
    else:
        path = path.resolve()  # a link stays one
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
        replace_file(path, data, mode)


def _unjudged(results: ClassResults) -> list[str]:
    """Return a sentence for every exercise that could not be judged for all students."""
    from grader.exercise.verdict import Status

    remarks = []
    for asked in results.asked:
        verdicts = [row.by_name[asked.name] for row in results.rows if asked.name in row.by_name]
        skipped = [one for one in verdicts if one.status is Status.SKIPPED]
        if skipped:
            count = f"{len(skipped)} submission{'s' if len(skipped) > 1 else ''}"
            remarks.append(
                f"{asked.name} could not be judged for {count} ({skipped[0].message}); it does not"
                " count there, neither for nor against"
            )
    return remarks
