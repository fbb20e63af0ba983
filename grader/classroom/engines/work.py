"""An order carried out, wherever the engine has brought it.

As a program, it reads a pickled order and writes what is told of it, pickled;
both are the grader's own, and no stranger's code runs in this process.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable

from grader.classroom.grading import grade
from grader.classroom.messages import GradingRequest, SubmissionJudged, SubmissionLost, Told
from grader.course.chapters import discover

__all__ = ["work"]


def work(
    order: GradingRequest, tell: Callable[[Told | SubmissionJudged | SubmissionLost], None]
) -> None:
    """Judge a submission; whatever goes wrong is told and not raised."""
    try:
        grade(order, discover(), tell)
    except Exception as error:
        tell(SubmissionLost(order.key, f"{type(error).__name__}: {error}"))
    else:
        tell(SubmissionJudged(order.key))


def main() -> None:
    """Serve the one order on standard input."""
    from grader.rank.process_limits import die_with_parent

    die_with_parent()
    # whatever prints, prints elsewhere
    answer = os.dup(1)
    os.dup2(2, 1)
    told: list[Told | SubmissionJudged | SubmissionLost] = []
    work(pickle.load(sys.stdin.buffer), told.append)
    with os.fdopen(answer, "wb") as out:
        pickle.dump(told, out)


if __name__ == "__main__":
    main()
