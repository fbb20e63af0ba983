"""A chapter as an assignment of nbgrader: the marks on its cells, and its folder in a course.

The marks are nbgrader's cell metadata, version 3
(https://nbgrader.readthedocs.io/en/stable/contributor_guide/metadata.html).
A cell with a stub is a *solution*, which students change.  A cell that asks
for the points of an answer is an *autograded test*: nbgrader reads the number.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

__all__ = ["CONFIG", "FOLDED", "PROSE", "QUESTION", "STUB", "answer", "furnish", "grade"]

_PICTURE = re.compile(r"\]\(\.\./imgs/([\w.-]+)\)")

#: What stands where a solution was.
STUB = "raise NotImplementedError"

#: A section for teachers, behind the end of a chapter.
PROSE = """\
## For a course that uses nbgrader

It reads from these cells what the answers of this chapter earn. There is nothing to change in them,
and if you work on your own, you need not run them."""

#: JupyterLab opens the notebook with the section of such a heading folded.
FOLDED = {"jp-MarkdownHeadingCollapsed": True}

#: A cell of its own imports: a student may have changed those of the first cell.
QUESTION = "from grader import points\n\npoints({name})"

#: What a course needs to know, for its ``nbgrader_config.py``.
CONFIG = f'''\
c = get_config()

# the stub of the course; how long the answer is stands in the line above
c.ClearSolutions.code_stub = {{"python": "{STUB}"}}
# seconds that a cell may take; an answer that never ends is given up sooner
c.Execute.timeout = 180
'''


def answer(exercises: Sequence[str]) -> dict[str, Any]:
    """The marks of the cell in which a student answers these exercises."""
    return _marks(f"{exercises[0]}-answer", solution=True)


def grade(exercise: str, points: float) -> dict[str, Any]:
    """The marks of the cell that asks what the answer to an exercise earns."""
    # nbgrader's own release locks such a cell like this
    marks = _marks(exercise, grade=True, points=float(points))
    return {"deletable": False, "editable": False, **marks}


def _marks(name: str, solution: bool = False, grade: bool = False, **more: float) -> dict[str, Any]:
    marks = {
        "grade": grade,
        "grade_id": name,
        "locked": grade,
        **more,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    return {"nbgrader": marks}


def furnish(course: Path, name: str, notebook: Any, pictures: Path) -> Path:
    """Put a chapter's source edition into a course of nbgrader, as an assignment of its name.

    Args:
        course: the folder of the course; it gets a configuration if it has none.
        name: of the chapter.
        notebook: its source edition; its links to pictures are changed.
        pictures: where the pictures are that it shows.

    Returns:
        the notebook's path.
    """
    folder = course / "source" / name
    folder.mkdir(parents=True, exist_ok=True)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for shown in _PICTURE.findall(cell.source):
                # nbgrader hands out what lies in the assignment's own folder
                (folder / "imgs").mkdir(exist_ok=True)
                shutil.copyfile(pictures / shown, folder / "imgs" / shown)
            cell.source = _PICTURE.sub(r"](imgs/\1)", cell.source)
    configuration = course / "nbgrader_config.py"
    if not configuration.exists():
        configuration.write_text(CONFIG, encoding="utf-8")
    path = folder / f"{name}.ipynb"
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return path
