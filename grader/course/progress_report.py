"""A learner's progress as text and as JSON, and the way on after a check."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader import __version__
from grader.course.progress import CourseProgress, ExerciseProgress
from grader.report.json import SCHEMA_VERSION
from grader.report.looks import Look
from grader.report.summary import CoursePlace, points
from headcount.report import visible

__all__ = [
    "part_sum",
    "place_in_course",
    "progress_cells",
    "progress_json",
    "progress_look",
    "progress_report",
    "sum_of",
]


# Words that the map of the course uses as well. -----------------------------------


def progress_look(progress: ExerciseProgress) -> Look:
    """Return how far a learner has come with an exercise, by the best of all checks."""
    if progress.entry is None or progress.passed:
        return Look.PASSED if progress.passed else Look.UNTOUCHED
    if progress.entry.only_misses_point:
        return Look.HALF
    return Look.PARTLY if progress.entry.best > 0 else Look.FAILED


def progress_cells(progress: ExerciseProgress) -> tuple[str, str]:
    """Return a learner's state in an exercise, and the time of the last check."""
    entry, state = progress.entry, progress.state
    if entry is None:
        return state, ""
    if not progress.passed:
        state += f", best {points(entry.best)} of {points(entry.max_score)}"
    elif not entry.last_passed:
        state += ", not the last time"
    return state, f"{entry.when.astimezone():%Y-%m-%d %H:%M}"


def part_sum(part: str, chapters: Mapping[str, Sequence[ExerciseProgress]]) -> str:
    """Return how much of a part of the course is done, as in ``Part one: 3 of 59``."""
    passed = [one.passed for exercises in chapters.values() for one in exercises]
    return f"{part}: {sum(passed)} of {len(passed)}"


def sum_of(overview: CourseProgress) -> str:
    """Return how much of the course is done, in one line."""
    if overview.file is None:
        return "Progress is not kept: GRADER_PROGRESS is set to nothing."
    if not overview.exercises:
        return "What you have passed is not known until that is mended."
    return f"{overview.passed} of {len(overview.exercises)} exercises passed"


# Text and JSON. -------------------------------------------------------------------


def progress_report(overview: CourseProgress) -> RenderableType:
    """Report a learner's progress, chapter by chapter; the last line is the sum."""
    lines: list[RenderableType] = []
    # one width for all chapters, so that their columns are aligned
    width = max((len(one.exercise.name) for one in overview.exercises), default=0)
    several = len(overview.parts()) > 1
    for part, chapters in overview.parts().items():
        if several:
            lines.append(Text(part_sum(part, chapters), style="bold underline"))
        for exercises in chapters.values():
            done = sum(one.passed for one in exercises)
            title = exercises[0].exercise.chapter_title
            lines.append(Text.assemble((title, "bold"), f" ({done} of {len(exercises)})"))
            lines.append(Padding(_chapter(exercises, width), (0, 0, 0, 2)))
    if overview.unknown:
        names = ", ".join(visible(name) for name in overview.unknown)
        lines.append(Text(f"in the file, but not in this course: {names}", style="dim"))
    lines += [
        Text(visible(f"{Look.ERROR.mark} {text}"), style="yellow") for text in overview.trouble
    ]
    following = overview.next
    if following is not None:
        lines.append(Text(f"Next: {following.name}, in chapter {following.chapter_title}"))
    lines.append(Text(sum_of(overview), style="bold"))
    return Group(*lines)


def _chapter(exercises: Sequence[ExerciseProgress], width: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, width=2 + width)
    table.add_column(width=25)
    table.add_column(no_wrap=True, style="dim")
    for progress in exercises:
        look = progress_look(progress)
        state, when = progress_cells(progress)
        name = Text.assemble((look.mark, look.terminal), " ", progress.exercise.name)
        table.add_row(name, Text(state, style=look.terminal), when)
    return table


def progress_json(overview: CourseProgress) -> str:
    """Return a learner's progress as one JSON object."""
    fields = {
        "schema_version": SCHEMA_VERSION,
        "grader_version": __version__,
        "file": str(overview.file) if overview.file else None,
        "trouble": list(overview.trouble),
        "unknown": list(overview.unknown),
        "passed": overview.passed,
        "exercises": [
            {
                "name": one.exercise.name,
                "chapter": one.exercise.chapter,
                "state": one.state,
                "score": one.entry.best if one.entry else 0.0,
                "max_score": one.exercise.points,
                "checks": one.entry.checks if one.entry else 0,
                "last_check": one.entry.when.isoformat() if one.entry else None,
                "last_passed": one.entry.last_passed if one.entry else None,
                "seconds": one.entry.seconds if one.entry else None,
            }
            for one in overview.exercises
        ],
    }
    return json.dumps(fields, ensure_ascii=True, indent=1)


# The place in the course after a check. -------------------------------------------

#: The largest notebook that is read for the heading of an exercise, in bytes.
_LARGEST_NOTEBOOK = 8 << 20


def place_in_course(progress: CourseProgress, name: str, folder: Path | None) -> CoursePlace:
    """Return the place in the course after an exercise.

    Args:
        progress: the learner's progress.
        name: the exercise.
        folder: the folder of the notebook that was checked, with its neighbours.
    """
    every = progress.exercises
    here = [one.exercise.name for one in every].index(name)
    chapter = every[here].exercise.chapter
    # what comes after it first, then what was left out before
    coming = (*every[here + 1 :], *every[:here])
    ahead = next((one.exercise for one in coming if not one.passed), None)
    link = ""
    if ahead is not None and folder is not None:
        link = _link(folder / f"{ahead.chapter}.ipynb", ahead.name)
    return CoursePlace(
        progress.passed,
        len(every),
        tuple(one.passed for one in every if one.exercise.chapter == chapter),
        "" if ahead is None else ahead.name,
        link,
    )


def _link(notebook: Path, name: str) -> str:
    """Return the address of the heading above an exercise; the chapter's if none is found."""
    defines = re.compile(rf"^(?:def|class) {name}\b|^{name} *=", re.M)
    heading = anchor = ""
    try:
        if notebook.stat().st_size > _LARGEST_NOTEBOOK:
            return ""
        for cell in json.loads(notebook.read_bytes())["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                heading = [heading, *re.findall(r"^#+ +(.+?) *$", text, re.M)][-1]
            elif defines.search(text):
                # JupyterLab's name of a heading is its text, with dashes for blanks
                anchor = heading and f"#{quote(heading.replace(' ', '-'), safe=':')}"
                break
    except (OSError, ValueError, LookupError, TypeError):
        return ""  # it is not there, or no notebook; then the name has to do
    return f"{quote(notebook.name)}{anchor}"
