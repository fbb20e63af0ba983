"""What a learner asks for between two checks: a hint, the stub of an exercise, their progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grader.api.written import written
from grader.course.course_map import map_html
from grader.course.help import help_of
from grader.course.index import IndexEntry, course_index
from grader.course.progress import CourseProgress, overview
from grader.course.progress_report import progress_report
from grader.exercise.declaration import Exercise
from grader.report.html import hints_html
from grader.report.text import hints_report
from headcount.core.errors import is_ours
from headcount.core.notebook import ipython_shell, is_kernel, shows_results
from headcount.report import plain

__all__ = ["Hints", "Progress", "Reset", "hint", "how_to_get_more", "progress", "reset"]

__tracebackhide__ = is_ours

#: How many hints on each exercise this process has given.
hints_given: dict[str, int] = {}


def _exercise_named(name: str | Callable[..., Any]) -> IndexEntry:
    return course_index()[name if isinstance(name, str) else name.__name__]


class Hints:
    """Hints on an exercise, the gentlest first, as far as they have been asked for.

    Attributes:
        name: the exercise.
        hints: those that are shown.
        total: how many there are.
        warns: whether the next hint is the last, and the whole answer.
    """

    def __init__(self, name: str, hints: Sequence[str], total: int, warns: bool = False) -> None:
        self.name = name
        self.hints = tuple(hints)
        self.total = total
        self.warns = warns

    @property
    def _next_hint_text(self) -> str:
        """How to see the next hint; backticks mark code."""
        left = self.total - len(self.hints)
        call = f'hint("{self.name}")'
        if self.warns:
            return f"The next hint is the whole answer. To see it, call `{call}` again."
        if left:
            return f"{left} more: for the next hint, call `{call}` again."
        return "There are no more hints: that was the last one."

    def __repr__(self) -> str:
        return plain(hints_report(self.hints, self._next_hint_text.replace("`", "")))

    def _repr_html_(self) -> str:
        return hints_html(self.name, self.hints, self._next_hint_text)


@written('hint("broadcast")', takes_function=False)
def hint(name: str | Callable[..., Any]) -> Hints:
    """Return the next hint on an exercise, from gentle to plain.

    Raises:
        UnknownExercise: no exercise has this name.
    """
    exercise = _exercise_named(name)
    known = help_of(exercise.chapter)[exercise.name]
    total = len(known.hints)
    given = min(hints_given.get(exercise.name, 0) + 1, total)
    hints_given[exercise.name] = given
    hints = Hints(exercise.name, known.hints[:given], total, known.tells_all and given == total - 1)
    if not shows_results():
        print(hints)
    return hints


def how_to_get_more(exercise: Exercise) -> str:
    """Return the call for the next hint on an exercise; empty after the last one."""
    given = hints_given.get(exercise.name, 0)
    return f'hint("{exercise.name}")' if given < len(exercise.help.hints) else ""


class Reset:
    """An exercise that begins again; the value of :func:`reset`.

    Attributes:
        name: the exercise.
        stub: the text of the cell that a student begins with.
        placed: whether the front end was asked for a new cell with it.
    """

    def __init__(self, name: str, stub: str, placed: bool) -> None:
        self.name = name
        self.stub = stub
        self.placed = placed

    def __repr__(self) -> str:
        if not self.placed:
            return self.stub
        return (
            f"The stub of {self.name} is in a new cell below. Your own cell is as it was; the one"
            " further down counts."
        )


@written('reset("broadcast")', takes_function=False)
def reset(name: str | Callable[..., Any]) -> Reset:
    """Begin an exercise again: put its stub into a new cell below this one.

    Your own cell stays as it is.  Outside of a notebook the stub is printed;
    ``python -m grader reset NOTEBOOK EXERCISE`` changes a file.

    Raises:
        UnknownExercise: no exercise has this name.
    """
    exercise = _exercise_named(name)
    # in a terminal it would be typed for the user, line by line
    placed = is_kernel()
    if placed:
        ipython_shell().set_next_input(exercise.stub)
    restart = Reset(exercise.name, exercise.stub, placed)
    if not shows_results():
        print(restart)
    return restart


class Progress:
    """A learner's progress in the course; the value of :func:`progress`.

    Attributes:
        overview: the same as data.
    """

    def __init__(self, overview: CourseProgress) -> None:
        self.overview = overview

    def __repr__(self) -> str:
        return plain(progress_report(self.overview))

    def _repr_html_(self) -> str:
        return map_html(self.overview)


@written("progress()", takes_function=False)
def progress() -> Progress:
    """Return which exercises of the course are passed, tried or untouched.

    Every :func:`check` of your own functions counts, in notebooks and on the
    command line.  Progress is kept in ``.grader/progress.json`` of the course; delete
    the file to begin anew.
    """
    found = Progress(overview(course_index()))
    if not shows_results():
        print(found)
    return found
