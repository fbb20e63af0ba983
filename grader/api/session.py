"""What the calls of one session share: the catalogue, fresh seeds, and ranks to stop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from grader.api.predictions import recall_prediction
from grader.course.chapters import discover
from grader.exercise.catalogue import Catalogue
from grader.exercise.declaration import Exercise
from headcount import runs
from headcount.core.errors import is_ours
from headcount.core.random_numbers import fresh_seed
from headcount.launch.launchers import Launcher

__all__ = [
    "catalogue",
    "fresh_seed",
    "stoppable",
]

__tracebackhide__ = is_ours

_catalogue: Catalogue[Exercise] | None = None


def catalogue() -> Catalogue[Exercise]:
    """Return the exercises of the course."""
    global _catalogue
    if _catalogue is None:
        _catalogue = discover()
    return _catalogue


@contextlib.contextmanager
def stoppable() -> Iterator[Launcher]:
    """Give this process's launcher, and end its worlds afterwards, also on an interrupt.

    Raises:
        Stopped: the user has interrupted the work.
    """
    recall_prediction()  # whatever a learner starts passes here
    with runs.stoppable() as launcher:
        yield launcher
