"""``python -m grader export``: results in the forms that other systems take.

:data:`FORMATS` is the registry: the command line takes its choices and help from it, and
tests compare the documentation with it.  A new form is one entry, with a function that
makes its files; a long one has a module of its own, as Canvas and Gradescope have.  The
functions import what they need when they are called, since every command reads the registry.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from grader.core.errors import RequestError

if TYPE_CHECKING:
    from grader.classroom.results import ClassResults

__all__ = ["FORMATS", "ExportFormat", "ExportedFiles", "export"]


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
class ExportFormat:
    """A form in which other systems take grades.

    Attributes:
        name: the word for ``--format``.
        system: the program that takes it, as people call it.
        target: an example for ``--to``; it ends in ``/`` if the target is a folder.
        content: a phrase that says what is written.
        make: the files for a class, and for Canvas a gradebook to fill in.
        fills_gradebook: whether it takes a gradebook.
    """

    name: str
    system: str
    target: str
    content: str
    make: Callable[[ClassResults, Path | None], ExportedFiles]
    fills_gradebook: bool = False

    @property
    def is_folder(self) -> bool:
        """Whether the target is a folder."""
        return self.target.endswith("/")


def _csv(results: ClassResults, book: Path | None) -> ExportedFiles:
    from grader.classroom.results import gradebook

    return ExportedFiles(gradebook(results), remarks=_without_grade(results))


def _canvas(results: ClassResults, book: Path | None) -> ExportedFiles:
    from grader.classroom.canvas import canvas

    made = canvas(results, book)
    remarks = [f"no grade for {one.row.student}: {one.reason}" for one in made.left_out]
    remarks += [f"found by the name alone: {row.student}" for row in made.by_name]
    if made.scaled is not None:
        remarks.append(f"a full score is {made.scaled:g} in Canvas; scores are in proportion")
    return ExportedFiles(made.data, remarks=remarks)


def _gradescope(results: ClassResults, book: Path | None) -> ExportedFiles:
    from grader.classroom.gradescope import autograder, gradescope, to_json

    files = {"autograder.zip": autograder()}
    remarks = []
    for row in results.rows:
        if reason := results.ungraded(row):
            # a file would have to say how many points were earned
            remarks.append(f"no results for {row.student}: {row.fault or reason}")
        else:
            files[f"{row.key}/results.json"] = to_json(gradescope(results, row)).encode()
    return ExportedFiles(folder=files, remarks=remarks)


def _nbgrader(results: ClassResults, book: Path | None) -> ExportedFiles:
    from grader.classroom.results import nbgrader_gradebook

    return ExportedFiles(nbgrader_gradebook(results), remarks=_without_grade(results))


def _without_grade(results: ClassResults) -> list[str]:
    reasons = [(row, results.ungraded(row)) for row in results.rows]
    return [f"no grade for {row.student}: {reason}" for row, reason in reasons if reason]


#: Every form, by its name.
FORMATS: dict[str, ExportFormat] = {
    form.name: form
    for form in (
        ExportFormat("csv", "spreadsheets", "grades.csv", "the gradebook that grade writes", _csv),
        ExportFormat(
            "canvas",
            "Canvas",
            "canvas.csv",
            "its gradebook, with this assignment's grades",
            _canvas,
            fills_gradebook=True,
        ),
        ExportFormat(
            "gradescope",
            "Gradescope",
            "gradescope/",
            "results.json for each student, and an autograder to upload",
            _gradescope,
        ),
        ExportFormat(
            "nbgrader", "nbgrader", "nbgrader.csv", "the columns of nbgrader export", _nbgrader
        ),
    )
}


def export(folder: Path, name: str, to: Path, book: Path | None = None) -> list[str]:
    """Write results in a form, and return the remarks to print.

    Args:
        folder: the folder of results.
        name: one of :data:`FORMATS`.
        to: the file or folder to write.
        book: an exported gradebook to fill in, where the form takes one.

    Raises:
        RequestError: there are no results, or the target cannot be written.
    """
    from grader.classroom.pages import replace_file
    from grader.classroom.results import class_results
    from grader.classroom.store import Store, make_private_folder
    from grader.report.summary import visible

    form = FORMATS[name]
    if book is not None and not form.fills_gradebook:
        takers = " or ".join(form.name for form in FORMATS.values() if form.fills_gradebook)
        raise RequestError(f"--gradebook is for --format {takers}")
    with Store(folder, readonly=True) as store:
        results = class_results(store)
    try:
        made = form.make(results, book)
        if form.is_folder:
            make_private_folder(to)
            for path, data in made.folder.items():
                replace_file(to / path, data)
        else:
            to.parent.mkdir(parents=True, exist_ok=True)
            with open(to, "wb", opener=_privately) as file:
                file.write(made.data)
    except OSError as error:
        raise RequestError(f"{error.filename or to}: {error.strerror}") from None
    return [visible(line) for line in made.remarks + _unjudged(results)]


def _privately(path: str, flags: int) -> int:
    """Open a file that only its owner may read if it is new; one that exists keeps its mode."""
    return os.open(path, flags, 0o600)


def _unjudged(results: ClassResults) -> list[str]:
    """Return a sentence for every exercise that could not be judged for all students."""
    from grader.core.verdict import Status

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
