"""Builds both editions of the chapters from their sources: ``make notebooks``.

The student's edition is a function of the source alone.  The solved edition
is executed; its outputs are what nbval compares later runs with.  An output that
contradicts what the chapter claims of it (see ``tools/chapter.py``) is not stored.  With
``--nbgrader COURSE`` neither is built: the chapters become assignments in a
course of nbgrader instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbclient.util import ensure_async

from grader.course.chapters import discover
from grader.course.index import ENTRIES, TITLES, IndexEntry
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise
from tools.assignment import furnish
from tools.chapter import Chapter, ChapterError, Claim, to_text

ROOT = Path(__file__).resolve().parent.parent

#: Seconds that one cell may take.
CELL_SECONDS = 300

#: How the output of a cell names controls that live in the kernel.
_CONTROLS = "application/vnd.jupyter.widget-view+json"


def sources(folder: Path) -> list[Path]:
    """The sources of the chapters, in order."""
    return sorted(folder.glob("[0-9][0-9]_*.py"))


class ClaimRefuted(Exception):
    """A run of a chapter has printed what contradicts its text.

    Args:
        claim: what was claimed.
        error: the name of the exception.
        message: the sentence that the claim backs.
        cell: the cell of the notebook whose output it is about.
    """

    def __init__(self, claim: Claim, error: str, message: str, cell: Any) -> None:
        super().__init__(error, message)
        self.claim = claim
        said = message if error == "AssertionError" else f"{error}: {message}"
        printed = "".join(output.get("text", "") for output in cell.outputs).rstrip()
        self.report = (
            f"this run contradicts the chapter: {said}\n{claim.source}\n"
            f"The cell above it has printed:\n{printed or '(nothing)'}\n"
            "Nothing is stored. Build the chapter on a machine that does nothing else; if it still"
            " contradicts, mend the sentence."
        )


class _Builder(NotebookClient):
    """Runs a notebook, and what is claimed of its outputs, each claim below its cell."""

    def __init__(self, notebook: Any, claims: Mapping[str, Sequence[Claim]], **options: Any):
        super().__init__(notebook, **options)
        self._claims = claims

    async def async_execute_cell(self, cell: Any, *where: Any, **options: Any) -> Any:
        """Run a cell, and then the claims below it, which leave no trace in the notebook.

        Raises:
            ClaimRefuted: a claim does not hold.
        """
        done = await super().async_execute_cell(cell, *where, **options)
        for claim in self._claims.get(cell.id, ()):
            kernel: Any = self.kc
            asked = kernel.execute_interactive(
                claim.source, store_history=False, timeout=CELL_SECONDS, output_hook=lambda _: None
            )
            answer = (await ensure_async(asked))["content"]
            if answer["status"] != "ok":
                raise ClaimRefuted(claim, answer["ename"], answer["evalue"], cell)
        return done


def execute(
    notebook: Any, folder: Path, claims: Mapping[str, Sequence[Claim]] | None = None
) -> None:
    """Run every cell of a notebook, in a folder, and keep the outputs.

    Args:
        notebook: the notebook.
        folder: where its kernel works.
        claims: what is claimed of the outputs, by the id of the cell above.

    Raises:
        CellExecutionError: a cell fails.
        ClaimRefuted: an output contradicts a claim.
    """
    _Builder(
        notebook,
        claims or {},
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


def index_text(chapter: Chapter, exercises: Catalogue[Exercise]) -> str:
    """Return a chapter's entries in the index of the course, as they are stored."""
    stubs, entries = chapter.stubs(), []
    for exercise in exercises.chapters().get(chapter.name, ()):
        cell, stub = stubs[exercise.name]
        entries.append(
            IndexEntry(
                exercise.name,
                exercise.chapter,
                exercise.signature,
                exercise.summary,
                exercise.points,
                exercise.world_sizes,
                cell,
                stub,
            )
        )
    return msgspec.json.format(msgspec.json.encode(entries), indent=1).decode() + "\n"


def _note_title(chapter: Chapter) -> None:
    """Enter a chapter's title among those of the others."""
    titles = json.loads(TITLES.read_text(encoding="utf-8"))
    titles[chapter.name] = chapter.title
    text = json.dumps(titles, indent=1, sort_keys=True, ensure_ascii=False)
    TITLES.write_text(f"{text}\n", encoding="utf-8")


def build(
    chapter: Chapter, exercises: Catalogue[Exercise], notebooks: Path, solutions: Path, run: bool
) -> list[Path]:
    """Write a chapter's editions and its entries in the index; the files written."""
    student = notebooks / f"{chapter.name}.ipynb"
    student.write_text(to_text(chapter.student_edition()), encoding="utf-8")
    written = [student]
    if chapter.stubs():
        written.append(ENTRIES / f"{chapter.name}.json")
        ENTRIES.mkdir(exist_ok=True)
        written[-1].write_text(index_text(chapter, exercises), encoding="utf-8")
        _note_title(chapter)
    if not run:
        return written
    solved = solutions / f"{chapter.name}.ipynb"
    notebook = chapter.solved_edition()
    try:
        execute(notebook, solutions, chapter.claims())
    except ClaimRefuted as error:
        raise ChapterError(chapter.path, error.claim.line, error.report) from None
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
    exercises = discover(request.exercises)
    worth = {name: exercise.points for name, exercise in exercises.items()}
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
                places = request.notebooks, request.solutions
                written = build(chapter, exercises, *places, run=not request.no_run)
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
