"""Shows the student's code a clock that an adapter sets."""

from __future__ import annotations

import contextlib
import math
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch.distributed as dist

from grader.instruments.marks import time_mark
from headcount.core.source_locations import is_students

__all__ = ["Clock", "show_clock", "mark_time"]


#: Functions of :mod:`time` that read the wall clock in seconds; each has a ``_ns`` form.
_SECONDS = ("perf_counter", "monotonic", "time")

#: Functions that read the processor's time, of which waiting for a message takes next to none.
_PROCESSOR = ("process_time", "thread_time")

#: Functions that hold a clock as a default argument.
_WITH_DEFAULTS: tuple[Any, ...] = (timeit.timeit, timeit.repeat, timeit.Timer.__init__)


class Clock:
    """A clock that shows ``now``, in seconds, to the student's code.

    It starts at 2²⁰ s.  Sums and differences of binary fractions are exact in float64 there,
    while a time stored in a float32 tensor comes out wrong, as it should.

    Args:
        also: returns seconds that are added to ``now``, such as the time that communication
            has taken.
    """

    def __init__(self, also: Callable[[], float]) -> None:
        self.now = float(1 << 20)
        self._also = also

    def seconds(self) -> float:
        """Return the time in seconds."""
        return self.now + self._also()

    def nanoseconds(self) -> int:
        """Return the time in nanoseconds."""
        return round(self.seconds() * 1e9)


#: The clocks that are shown, by rank: simulated ranks share one process, and are in the function
#: at the same time.
_shown: dict[int, Clock] = {}

#: What puts the real clocks back, once none is shown any more.
_put_back = contextlib.ExitStack()

#: The functions that show them, each in the place of a real clock.
_readers: dict[Any, Callable[[], Any]] = {}


def _reader(real: Callable[[], Any], shown: Callable[[Clock], Any]) -> Callable[[], Any]:
    """Return a function that gives a rank's own code what its clock shows, and others the real."""

    def read() -> Any:
        if not is_students(sys._getframe(1).f_code.co_filename):
            return real()
        clock = _shown.get(_own_rank())
        return real() if clock is None else shown(clock)

    return read


def _standing_still(kind: Callable[[], Any]) -> Callable[[Clock], Any]:
    return lambda clock: kind()


def _own_rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def mark_time(value: Any) -> bool:
    """Mark the time that an answer has returned, in seconds, and return whether it is a time.

    The judge compares it with its own clock, see :func:`grader.exercise.limits.mistimed`.
    """
    if not isinstance(value, float) or not 0 < value < math.inf:
        return False
    dist.group.WORLD.mark(time_mark(value))  # type: ignore[union-attr]
    return True


@contextlib.contextmanager
def show_clock(function: Callable[..., Any], clock: Clock) -> Iterator[None]:
    """Let the student's code read this clock instead of those of :mod:`time`, inside the context.

    This covers ``time.perf_counter``, ``monotonic`` and ``time`` with their ``_ns`` forms, also
    where the function's module has imported them by name, and ``timeit``.  The processor's
    clocks stand still.
    """
    if not _shown:
        _show_clocks()
    rank = _own_rank()
    _shown[rank] = clock
    _replace_clocks(_globals(function))
    try:
        yield
    finally:
        del _shown[rank]
        if not _shown:
            _put_back.close()
            _readers.clear()


def _show_clocks() -> None:
    """Put readers in the place of the clocks of :mod:`time` and of those of :mod:`timeit`."""
    for name in _SECONDS:
        real, nanoseconds = getattr(time, name), getattr(time, f"{name}_ns")
        _readers[real] = _reader(real, Clock.seconds)
        _readers[nanoseconds] = _reader(nanoseconds, Clock.nanoseconds)
    for name in _PROCESSOR:
        for each, kind in ((name, float), (f"{name}_ns", int)):
            if hasattr(time, each):  # macOS has no clock for a thread
                real = getattr(time, each)
                _readers[real] = _reader(real, _standing_still(kind))
    for held in _WITH_DEFAULTS:
        _put_back.callback(setattr, held, "__defaults__", held.__defaults__)
        held.__defaults__ = tuple(map(_reader_of, held.__defaults__))
    for space in (vars(time), vars(timeit)):
        _replace_clocks(space)


def _replace_clocks(space: dict[str, Any]) -> None:
    """Put readers in the place of the clocks in a namespace, until none is shown any more."""
    for name, value in list(space.items()):
        reader = _reader_of(value)
        if reader is not value:
            _put_back.callback(space.__setitem__, name, value)
            space[name] = reader


def _reader_of(value: Any) -> Any:
    """Return the reader of a clock, found by identity, since some values cannot be hashed."""
    return next((reader for real, reader in _readers.items() if value is real), value)


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    return function.__globals__ if isinstance(function, FunctionType) else {}
