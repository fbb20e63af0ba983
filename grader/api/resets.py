"""Puts the stub of an exercise into a new cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.course.index import course_index
from headcount.core.errors import is_ours
from headcount.core.notebook import ipython_shell, is_kernel, shows_results

__all__ = [
    "Reset",
    "reset",
]

__tracebackhide__ = is_ours


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


def reset(name: str | Callable[..., Any]) -> Reset:
    """Begin an exercise again: put its stub into a new cell below this one.

    Your own cell stays as it is.  Outside of a notebook the stub is printed;
    ``python -m grader reset NOTEBOOK EXERCISE`` changes a file.

    Raises:
        UnknownExercise: no exercise has this name.
    """
    exercise = course_index()[name if isinstance(name, str) else name.__name__]
    # in a terminal it would be typed for the user, line by line
    placed = is_kernel()
    if placed:
        ipython_shell().set_next_input(exercise.stub)
    restart = Reset(exercise.name, exercise.stub, placed)
    if not shows_results():
        print(restart)
    return restart
