"""Counts the lines of the student's own code that a call runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from headcount.core.source_locations import is_students

__all__ = ["count_lines"]


def count_lines(function: Callable[..., Any], *arguments: Any) -> int:
    """Return how many lines of the student's own code a call runs, counting every iteration.

    A comprehension or a loop on one line counts once per iteration; a generator, a lambda or a
    helper counts each time it is entered.
    """
    count = 0

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not is_students(frame.f_code.co_filename):
            return None
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count
