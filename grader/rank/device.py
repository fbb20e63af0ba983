"""A device that an adapter plays: it works by itself, while the host goes on.

Used inside the ranks, for exercises that time what a GPU does, on machines
that have none.  It keeps the rules of CUDA that matter for timing, on the
adapter's clock: a launch returns at once; what was launched runs later, in
order; an event has its time when the work before it is done; and nobody can
ask for that before the host has waited.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch

from grader.rank.clock import Clock

__all__ = ["Device", "OnDevice", "on_device", "played", "without_device"]

#: What the functions that are played for the student belong to.
_PLACES = (torch.cuda, torch.accelerator)


class OnDevice(torch.Tensor):
    """A tensor that says that it is on a CUDA device; its numbers lie on the CPU."""

    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)
    device = property(lambda self: torch.device("cuda", 0))

    def get_device(self) -> int:
        """The number of its device."""
        return 0


def on_device(tensor: torch.Tensor) -> OnDevice:
    """The tensor, as one that is on the device."""
    return tensor.as_subclass(OnDevice)


class Device:
    """A queue of work with a clock that the host shares.

    Args:
        clock: the host's.
        launch: seconds of the host's that a launch takes; kernels take longer.
        notice: seconds until a host that waits has noticed that all is done.
    """

    def __init__(self, clock: Clock, launch: float, notice: float) -> None:
        self.clock = clock
        self._launch = launch
        self._notice = notice
        self._free = clock.now

    @property
    def done(self) -> float:
        """When all that was launched will be done."""
        return max(self._free, self.clock.now)

    def run(self, seconds: float) -> None:
        """Launch a kernel that takes so long."""
        self._free = self.done + seconds
        self.clock.now += self._launch

    def wait(self, until: float | None = None) -> None:
        """Let the host wait for the device."""
        until = self._free if until is None else until
        self.clock.now = max(self.clock.now, until) + self._notice


def _event_of(device: Device) -> type:
    class Event:
        """What ``torch.cuda.Event`` does."""

        def __init__(self, *_: Any, enable_timing: bool = False, **__: Any) -> None:
            self._timed = enable_timing
            self._stamp: float | None = None

        def record(self, stream: Any = None) -> None:
            self._stamp = device.done

        def query(self) -> bool:
            return self._stamp is None or self._stamp <= device.clock.now

        def synchronize(self) -> None:
            device.wait(device.clock.now if self._stamp is None else self._stamp)

        def wait(self, stream: Any = None) -> None:
            """The stream waits, and there is one stream only."""

        def elapsed_time(self, end: Event) -> float:
            if not (self._timed and end._timed):
                raise ValueError("Both events must be created with argument 'enable_timing=True'.")
            if self._stamp is None or end._stamp is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            if not (self.query() and end.query()):
                raise RuntimeError("CUDA error: device not ready")
            return (end._stamp - self._stamp) * 1e3

    return Event


def _stream_of(device: Device, event: type) -> Any:
    class Stream:
        """What a ``torch.cuda.Stream`` does: here is one only."""

        def synchronize(self) -> None:
            device.wait()

        def query(self) -> bool:
            return device.done <= device.clock.now

        def record_event(self, recorded: Any = None) -> Any:
            recorded = event() if recorded is None else recorded
            recorded.record()
            return recorded

        def wait_event(self, awaited: Any) -> None:
            """There is one stream only."""

        wait_stream = wait_event

    return Stream()


@contextlib.contextmanager
def played(function: Callable[..., Any], device: Device) -> Iterator[None]:
    """Let ``torch.cuda`` be this device; for one call of the student's function."""
    event = _event_of(device)
    stream = _stream_of(device, event)
    parts = {
        "Event": event,
        "synchronize": lambda *_: device.wait(),
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "current_stream": lambda *_: stream,
        "default_stream": lambda *_: stream,
        "current_accelerator": lambda *_: torch.device("cuda"),
    }
    with _instead(function, parts):
        yield


@contextlib.contextmanager
def without_device(function: Callable[..., Any]) -> Iterator[None]:
    """Let ``torch.cuda`` be as on a machine without a GPU, whatever there is; for one call."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no CUDA device is available; these tensors are on the CPU")

    parts = {
        "Event": refuse,
        "synchronize": refuse,
        "current_stream": refuse,
        "is_available": lambda: False,
        "device_count": lambda: 0,
    }
    with _instead(function, parts):
        yield


@contextlib.contextmanager
def _instead(function: Callable[..., Any], parts: dict[str, Any]) -> Iterator[None]:
    spaces = [vars(place) for place in _PLACES]
    if isinstance(function, FunctionType):
        spaces.append(function.__globals__)
    real = [
        (space[name], part) for space in spaces[:2] for name, part in parts.items() if name in space
    ]
    with contextlib.ExitStack() as undo:
        for space in spaces:
            for name, value in list(space.items()):
                for original, part in real:
                    if value is original:
                        undo.callback(space.__setitem__, name, value)
                        space[name] = part
        yield
