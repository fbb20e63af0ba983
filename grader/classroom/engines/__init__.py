"""Where submissions are judged: processes of this machine, or a cluster's.

An engine takes orders and gives what is told of them.  It judges nothing and
stores nothing, so engines differ in nothing that a student could notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from grader.classroom.messages import (
    GradingRequest,
    SubmissionJudged,
    SubmissionLost,
    Told,
    Workers,
)

__all__ = ["Engine"]


class Engine(Protocol):
    """Judges submissions side by side."""

    def run(
        self, orders: Iterable[GradingRequest]
    ) -> Iterator[Told | SubmissionJudged | SubmissionLost | Workers]:
        """Yield what happens to the requests, as it happens; the last of each is its end.

        Orders are taken when there is somebody to work on them, so they may
        be made one by one.
        """
        ...

    def close(self) -> None:
        """Stop all work."""
        ...
