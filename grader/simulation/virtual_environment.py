"""What else a rank takes to be its own: the clock, and torch's random numbers.

A real rank is a process, with a clock that goes on and a generator that nobody
else draws from.  Here a rank's clock is the virtual one, so that ``time.sleep``
stands for computing and what it measures is what the model says; and every rank
draws the numbers that it would draw alone.  Python's and numpy's own generators
are shared by all ranks.
"""

from __future__ import annotations

import _thread
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.simulation.clock import PER_SECOND, ticks_of
from grader.simulation.mailboxes import Hub

__all__ = ["surroundings"]

#: How torch marks an operation that draws from a generator.
_DRAWS = torch.Tag.nondeterministic_seeded

#: What draws, sets or reads the generator beside the operations that are marked.
_ALSO = ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "random_")

_PER_NANOSECOND = PER_SECOND // 10**9


@contextlib.contextmanager
def surroundings(hub: Hub) -> Iterator[None]:
    """While the clock and torch's random numbers are those of the rank that runs."""
    with contextlib.ExitStack() as stack:
        for name, call in _clocks(hub).items():
            stack.enter_context(_replaced(time, name, call))
        starters: list[tuple[Any, str]] = [
            (threading.Thread, "start"),
            (_thread, "start_new_thread"),
        ]
        for place, name in starters:
            stack.enter_context(_replaced(place, name, hub.threaded(getattr(place, name))))
        generators = _Generators(hub)
        for owner in (torch, torch.Tensor, torch.nn.functional):
            for name in _drawing():
                draws = getattr(owner, name, None)
                if callable(draws):
                    stack.enter_context(_replaced(owner, name, generators.of_the_rank(draws)))
        yield


@contextlib.contextmanager
def _replaced(place: Any, name: str, call: Callable[..., Any]) -> Iterator[None]:
    own = name in vars(place)
    before = getattr(place, name)
    setattr(place, name, call)
    try:
        yield
    finally:
        # a method that was inherited is inherited again
        if own:
            setattr(place, name, before)
        else:
            delattr(place, name)


def _clocks(hub: Hub) -> dict[str, Callable[..., Any]]:
    """The functions of :mod:`time` that tell or pass it, in virtual time."""
    begun, begun_ns = time.time(), time.time_ns()

    def seconds() -> float:
        return hub.now / PER_SECOND

    def nanoseconds() -> int:
        return hub.now // _PER_NANOSECOND

    def sleep(seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        hub.sleep(ticks_of(float(seconds)))

    return {
        **dict.fromkeys(("perf_counter", "monotonic", "process_time", "thread_time"), seconds),
        **dict.fromkeys(
            ("perf_counter_ns", "monotonic_ns", "process_time_ns", "thread_time_ns"), nanoseconds
        ),
        "time": lambda: begun + seconds(),
        "time_ns": lambda: begun_ns + nanoseconds(),
        "sleep": sleep,
    }


def _drawing() -> list[str]:
    """Names of functions and methods that have to do with torch's generator."""
    found = set(_ALSO)
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        if name.startswith("__") or not hasattr(packet, "overloads"):
            continue
        if any(_DRAWS in getattr(packet, one).tags for one in packet.overloads()):
            found.add(name)
    return sorted(found)


class _Generators:
    """Lends torch's one generator to whoever draws, as that rank has left it."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._get, self._set = torch.get_rng_state, torch.set_rng_state
        self._first = self._get()
        self._states: dict[int, torch.Tensor] = {}
        self._owner: int | None = None

    def of_the_rank(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that draws, for the rank that calls it."""

        def draw(*arguments: Any, **named: Any) -> Any:
            me = self._hub.current.number
            if me != self._owner:
                if self._owner is not None:
                    self._states[self._owner] = self._get()
                self._set(self._states.get(me, self._first))
                self._owner = me
            return call(*arguments, **named)

        return draw
