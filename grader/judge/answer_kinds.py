"""What the judge knows of answers that have to be prepared before they can be called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from grader.core.verdict import Failure
from grader.exercise.declaration import Exercise
from grader.launch.launchers import Launcher
from grader.launch.world import Job, Outcome

__all__ = ["AnswerKind", "Preparation"]


@dataclass(frozen=True)
class Preparation:
    """The result of preparing an answer.

    Attributes:
        library: the path of the library that ranks call; empty if there is none.
        failure: why there is none, where that is the answer's fault.
        unavailable: why there is none, where this machine cannot make one.
    """

    library: str = ""
    failure: Failure | None = None
    unavailable: str = ""


class AnswerKind(Protocol):
    """A kind of answer that is no Python function."""

    def covers(self, exercise: Exercise) -> bool:
        """Return whether the answers to an exercise are of this kind."""
        ...

    def prepare(
        self,
        exercise: Exercise,
        run: Callable[[Job], Outcome],
        launcher: Launcher,
        size: int,
        seconds: float,
    ) -> Preparation:
        """Prepare an answer, so that ranks can call it.

        Args:
            exercise: the exercise.
            run: runs a job in the answer's first world.
            launcher: starts the processes that the preparation needs.
            size: the size of that world.
            seconds: the time limit of its ranks.
        """
        ...
