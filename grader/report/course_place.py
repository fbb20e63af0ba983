"""After a check: how much of the course is done, and which exercise comes next."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from grader.judge.progress import CourseProgress, ExerciseProgress, ProgressState

__all__ = ["CoursePlace", "place_in_course"]

#: The largest notebook that is read for the heading of an exercise, in bytes.
_LARGEST = 8 << 20


@dataclass(frozen=True)
class CoursePlace:
    """A learner's place in the course.

    Attributes:
        passed: the number of exercises that are passed.
        of: the number of exercises.
        chapter: of every exercise of the chapter, whether it is passed.
        next_name: the next exercise that is not passed; empty if all are.
        next_link: the address of its heading, seen from the notebook that was checked;
            empty where its chapter is not beside that.
    """

    passed: int
    of: int
    chapter: tuple[bool, ...]
    next_name: str = ""
    next_link: str = ""

    @property
    def in_words(self) -> str:
        """How many exercises are done."""
        return f"{self.passed} of {self.of} exercises done"

    @property
    def dots(self) -> str:
        """A mark for every exercise of the chapter."""
        return "".join("●" if passed else "○" for passed in self.chapter)

    @property
    def chapter_in_words(self) -> str:
        """The same in words."""
        if all(self.chapter):
            return "chapter complete"
        return f"{sum(self.chapter)} of {len(self.chapter)} in this chapter"


def place_in_course(progress: CourseProgress, name: str, folder: Path | None) -> CoursePlace:
    """Return the place in the course after an exercise.

    Args:
        progress: the learner's progress.
        name: the exercise.
        folder: the folder of the notebook that was checked, with its neighbours.
    """
    names = [one.exercise.name for one in progress.exercises]
    here = names.index(name)
    chapter = progress.exercises[here].exercise.chapter
    # what comes after it first, then what was left out before
    coming = (*progress.exercises[here + 1 :], *progress.exercises[:here])
    ahead = next((one for one in coming if not _passed(one)), None)
    place = CoursePlace(
        progress.passed,
        len(names),
        tuple(_passed(one) for one in progress.exercises if one.exercise.chapter == chapter),
    )
    if ahead is None:
        return place
    link = "" if folder is None else _link(folder / f"{ahead.exercise.chapter}.ipynb", ahead)
    return CoursePlace(place.passed, place.of, place.chapter, ahead.exercise.name, link)


def _passed(one: ExerciseProgress) -> bool:
    return one.state is ProgressState.PASSED


def _link(notebook: Path, ahead: ExerciseProgress) -> str:
    """Return the address of the heading above an exercise; the chapter's if none is found."""
    try:
        if notebook.stat().st_size > _LARGEST:
            return ""
        cells = json.loads(notebook.read_bytes())["cells"]
        heading = _heading(cells, ahead.exercise.name)
    except (OSError, ValueError, LookupError, TypeError):
        return ""  # it is not there, or no notebook; then the name has to do
    # JupyterLab's name of a heading is its text, with dashes for blanks
    anchor = f"#{quote(heading.replace(' ', '-'), safe=':')}" if heading else ""
    return f"{quote(notebook.name)}{anchor}"


def _heading(cells: list[dict[str, Any]], name: str) -> str:
    """Return the text of the last heading before the cell that defines a name."""
    defines = re.compile(rf"^(?:def|class) {name}\b|^{name} *=", re.M)
    heading = ""
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            heading = ([heading, *re.findall(r"^#+ +(.+?) *$", text, re.M)])[-1]
        elif defines.search(text):
            return heading
    return ""
