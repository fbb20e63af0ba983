"""Gives the hints on an exercise one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grader.course.help import help_of
from grader.course.index import course_index
from grader.exercise.declaration import Exercise
from grader.report.html import hints_html
from grader.report.text import hints_report
from headcount.core.errors import is_ours
from headcount.core.notebook import shows_results
from headcount.report import plain

__all__ = [
    "Hints",
    "hint",
    "how_to_get_more",
]

__tracebackhide__ = is_ours

#: How many hints on each exercise this process has given.
_hints_given: dict[str, int] = {}


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
    def _more(self) -> str:
        """How to see the next hint; backticks mark code."""
        left = self.total - len(self.hints)
        call = f'hint("{self.name}")'
        if self.warns:
            return f"The next hint is the whole answer. To see it, call `{call}` again."
        if left:
            return f"{left} more: for the next hint, call `{call}` again."
        return "There are no more hints: that was the last one."

    def __repr__(self) -> str:
        return plain(hints_report(self.hints, self._more.replace("`", "")))

    def _repr_html_(self) -> str:
        return hints_html(self.name, self.hints, self._more)


def hint(name: str | Callable[..., Any]) -> Hints:
    """Return the next hint on an exercise, from gentle to plain.

    Raises:
        UnknownExercise: no exercise has this name.
    """
    exercise = course_index()[name if isinstance(name, str) else name.__name__]
    known = help_of(exercise.chapter)[exercise.name]
    total = len(known.hints)
    given = min(_hints_given.get(exercise.name, 0) + 1, total)
    _hints_given[exercise.name] = given
    hints = Hints(exercise.name, known.hints[:given], total, known.tells_all and given == total - 1)
    if not shows_results():
        print(hints)
    return hints


def how_to_get_more(exercise: Exercise) -> str:
    """Return the call for the next hint on an exercise; empty after the last one."""
    given = _hints_given.get(exercise.name, 0)
    return f'hint("{exercise.name}")' if given < len(exercise.help.hints) else ""
