"""An order carried out, wherever the engine has brought it."""

from __future__ import annotations

from collections.abc import Callable

from grader.classroom.grading import grade
from grader.classroom.orders import Done, Lost, Order, Told
from grader.exercises import discover

__all__ = ["work"]


def work(order: Order, tell: Callable[[Told | Done | Lost], None]) -> None:
    """Judge a submission; whatever goes wrong is told and not raised."""
    try:
        grade(order, discover(), tell)
    except Exception as error:
        tell(Lost(order.key, f"{type(error).__name__}: {error}"))
    else:
        tell(Done(order.key))
