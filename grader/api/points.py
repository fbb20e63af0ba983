"""What an answer earns, in a form that nbgrader reads from a notebook's cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.api import check
from grader.core.verdict import ExerciseVerdict, Status
from grader.report.html import exercise_html

__all__ = ["Points", "points"]


class Points:
    """The value of :func:`points`: a number for programs, the verdict for people.

    Attributes:
        verdict: the verdict as data.
    """

    def __init__(self, verdict: ExerciseVerdict) -> None:
        self.verdict = verdict

    @property
    def known(self) -> bool:
        """Whether the answer could be judged."""
        return self.verdict.status in (Status.PASSED, Status.FAILED)

    def __float__(self) -> float:
        if not self.known:
            raise ValueError(f"{self.verdict.name} could not be judged: {self.verdict.message}")
        return float(self.verdict.score)

    def __repr__(self) -> str:
        # nbgrader takes a cell's number for partial credit, any other text for
        # full marks and an error for none.  Empty text it refuses, so that what
        # could not be judged stops the autograding of this submission.
        return str(float(self)) if self.known else ""

    def _repr_html_(self) -> str:
        return exercise_html(self.verdict)


def points(answer: Callable[..., Any] | None = None, **named: Any) -> Points:
    """Judge a function as :func:`~grader.api.check` does; the value is what it earns.

    The last cells of a chapter call it.  A learner sees the verdict there,
    whatever it is, and nbgrader reads the number.

    Args:
        answer: the function or class; its name says which exercise it is.
        named: an answer without a name of its own, as for ``check``.

    Raises:
        UnknownExercise: no exercise has this name.
        RequestError: the answer is no function, or cannot be sent to other
            processes.
    """
    return Points(check(answer, **named).verdict)
