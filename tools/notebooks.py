"""Builds both editions of the chapters from their sources: ``make notebooks``.

The student's edition is a function of the source alone.  The solved edition
is executed; its outputs are what nbval compares later runs with.  With
``--nbgrader COURSE`` neither is built: the chapters become assignments in a
course of nbgrader instead.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from grader.course.chapters import discover
from tools.assignment import furnish
from tools.chapter import Chapter, ChapterError, stubs_text, to_text

ROOT = Path(__file__).resolve().parent.parent

#: Seconds that one cell may take.
CELL_SECONDS = 300

#: How the output of a cell names controls that live in the kernel.
_CONTROLS = "application/vnd.jupyter.widget-view+json"


def sources(folder: Path) -> list[Path]:
    """The sources of the chapters, in order."""
    return sorted(folder.glob("[0-9][0-9]_*.py"))


def execute(notebook: Any, folder: Path) -> None:
    """Run every cell of a notebook, in a folder, and keep the outputs."""
    NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # where a kernel flushes is chance
        resources={"metadata": {"path": str(folder)}},
    ).execute(env={**os.environ, "GRADER_PROGRESS": ""})  # a build is nobody's progress
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            output.get("metadata", {}).clear()
            # controls need a kernel, and have another id each time; the text beside them stays
            output.get("data", {}).pop(_CONTROLS, None)


#: Where the grader finds the stubs, to give one back to a learner.
STUBS = ROOT / "grader" / "course" / "stubs"


def build(chapter: Chapter, notebooks: Path, solutions: Path, run: bool) -> list[Path]:
    """Write a chapter's editions, and the stubs of its exercises; the files written."""
    student = notebooks / f"{chapter.name}.ipynb"
    student.write_text(to_text(chapter.student_edition()), encoding="utf-8")
    written = [student]
    if stubs := chapter.stubs():
        written.append(STUBS / f"{chapter.name}.json")
        STUBS.mkdir(exist_ok=True)
        written[-1].write_text(stubs_text(stubs), encoding="utf-8")
    if not run:
        return written
    solved = solutions / f"{chapter.name}.ipynb"
    notebook = chapter.solved_edition()
    execute(notebook, solutions)
    solved.write_text(to_text(notebook), encoding="utf-8")
    return [*written, solved]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapters", nargs="*", help="chapters such as 02; all if none")
    parser.add_argument("--solutions", type=Path, default=ROOT / "solutions")
    parser.add_argument("--notebooks", type=Path, default=ROOT / "notebooks")
    parser.add_argument(
        "--exercises",
        default="grader.course.chapters",
        help="the package of exercises",
    )
    parser.add_argument(
        "--nbgrader", type=Path, metavar="COURSE", help="assignments for this course of nbgrader"
    )
    parser.add_argument("--no-run", action="store_true", help="the student's edition only")
    request = parser.parse_args(arguments)
    worth = {name: exercise.points for name, exercise in discover(request.exercises).items()}
    request.notebooks.mkdir(parents=True, exist_ok=True)
    found = [
        path
        for path in sources(request.solutions)
        if not request.chapters or any(path.name.startswith(name) for name in request.chapters)
    ]
    if not found:
        print(f"no chapter {' '.join(request.chapters)} in {request.solutions}", file=sys.stderr)
        return 2
    for path in found:
        try:
            chapter = Chapter(path, worth)
            if request.nbgrader is None:
                written = build(chapter, request.notebooks, request.solutions, not request.no_run)
            else:
                notebook, pictures = chapter.source_edition(), request.solutions.parent / "imgs"
                written = [furnish(request.nbgrader, chapter.name, notebook, pictures)]
        except ChapterError as error:
            print(error, file=sys.stderr)
            return 1
        except CellExecutionError as error:
            print(f"{path}: a cell fails:\n{error}", file=sys.stderr)
            return 1
        print(*(os.path.relpath(file) for file in written))
    return 0


if __name__ == "__main__":
    sys.exit(main())
