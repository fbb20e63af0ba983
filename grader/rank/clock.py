"""A clock that an adapter turns: the student's code reads it, everybody else the real one.

Used inside the ranks, for exercises that measure time: what they find out is
then the same on every machine and in every run, and nobody has to sleep.
"""

from __future__ import annotations

import contextlib
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from grader.core.source_locations import is_students

__all__ = ["Clock", "shown_to"]

#: What reads seconds of wall clock, and what reads it in nanoseconds.
_SECONDS = ("perf_counter", "monotonic", "time")

#: What reads the processor's time; waiting for a message takes next to none of it.
_PROCESSOR = ("process_time", "thread_time")

#: Functions that have taken a clock as a default argument.
_WITH_DEFAULTS: tuple[Any, ...] = (
    timeit.timeit,
    timeit.repeat,
    timeit.Timer.__init__,
)


class Clock:
    """Shows ``now``, in seconds.

    The seconds are large and their fractions binary: sums and differences are
    exact in float64, and a clock that is read into a float32 tensor is wrong.

    Args:
        also: seconds that are added to what it shows, such as those that
            communication has taken.
    """

    def __init__(self, also: Callable[[], float]) -> None:
        self.now = float(1 << 20)
        self._also = also

    def seconds(self) -> float:
        """What a clock shows that counts seconds."""
        return self.now + self._also()

    def nanoseconds(self) -> int:
        """What a clock shows that counts nanoseconds."""
        return round(self.seconds() * 1e9)


def _reader(real: Callable[[], Any], shown: Callable[[], Any]) -> Callable[[], Any]:
    """A function that gives ``shown()`` to the student's code and ``real()`` to others."""

    def read() -> Any:
        caller = sys._getframe(1).f_code.co_filename
        return shown() if is_students(caller) else real()

    return read


@contextlib.contextmanager
def shown_to(function: Callable[..., Any], clock: Clock) -> Iterator[None]:
    """Let the student's code read this clock instead of ``time``'s; for one call.

    That goes for ``time.perf_counter``, ``monotonic`` and ``time`` and their
    ``_ns`` forms, also where the function's module has imported them by name,
    and for ``timeit``.  The processor's clocks stand still.
    """
    instead: dict[Any, Callable[[], Any]] = {}
    names: list[str] = []
    for name in _SECONDS:
        names += [name, f"{name}_ns"]
        instead[getattr(time, name)] = _reader(getattr(time, name), clock.seconds)
        real = getattr(time, f"{name}_ns")
        instead[real] = _reader(real, clock.nanoseconds)
    for name in _PROCESSOR:
        for each, kind in ((name, float), (f"{name}_ns", int)):
            if hasattr(time, each):  # macOS has no clock of a thread
                names.append(each)
                instead[getattr(time, each)] = _reader(getattr(time, each), kind)
    with contextlib.ExitStack() as undo:
        for name in names:
            _set(undo, vars(time), name, instead[getattr(time, name)])
        for held in _WITH_DEFAULTS:
            undo.callback(setattr, held, "__defaults__", held.__defaults__)
            held.__defaults__ = tuple(_other(value, instead) for value in held.__defaults__)
        for space in (vars(timeit), _globals(function)):
            for name, value in list(space.items()):
                if _other(value, instead) is not value:
                    _set(undo, space, name, _other(value, instead))
        yield


def _other(value: Any, instead: dict[Any, Callable[[], Any]]) -> Any:
    """What stands for a value; by identity, since some values cannot be hashed."""
    return next((other for real, other in instead.items() if value is real), value)


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    return function.__globals__ if isinstance(function, FunctionType) else {}


def _set(undo: contextlib.ExitStack, space: dict[str, Any], name: str, value: Any) -> None:
    undo.callback(space.__setitem__, name, space[name])
    space[name] = value
