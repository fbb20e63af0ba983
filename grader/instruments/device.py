"""Simulates a CUDA device for exercises that time a GPU, on machines without one.

The device keeps the rules of CUDA that matter for timing, on the adapter's clock: a launch returns
at once; the work runs later, in order; an event gets its time when the work before it is done, and
the host can read that time only after it has waited.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import torch

from grader.instruments.clock import Clock

__all__ = ["Device", "OnDevice", "on_device", "simulate_device", "without_device"]


#: The modules whose functions are replaced.
_PLACES = (torch.cuda, torch.accelerator)


class OnDevice(torch.Tensor):
    """A tensor that claims to be on a CUDA device, while its data are on the CPU."""

    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)
    device = property(lambda self: torch.device("cuda", 0))

    def get_device(self) -> int:
        """Return the index of its device."""
        return 0


def on_device(tensor: torch.Tensor) -> OnDevice:
    """Return a tensor that claims to be on the device and shares the data of this one."""
    return tensor.as_subclass(OnDevice)


class Device:
    """A queue of kernels that run one after the other, on the host's clock.

    Args:
        clock: the host's clock.
        launch: seconds of the host that a launch takes; kernels take longer.
        notice: seconds until a waiting host notices that the work is done.
    """

    def __init__(self, clock: Clock, launch: float, notice: float) -> None:
        self.clock = clock
        self._launch = launch
        self._notice = notice
        self._free = clock.now

    @property
    def done(self) -> float:
        """The time, in seconds, at which all launched kernels will be done."""
        return max(self._free, self.clock.now)

    def run(self, seconds: float) -> None:
        """Launch a kernel that takes ``seconds``."""
        self._free = self.done + seconds
        self.clock.now += self._launch

    def wait(self, until: float | None = None) -> None:
        """Let the host wait until a time, or until the device is idle."""
        until = self._free if until is None else until
        self.clock.now = max(self.clock.now, until) + self._notice


def _event_of(device: Device) -> type:
    class Event:
        """A stand-in for ``torch.cuda.Event``."""

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
            """Do nothing: there is only one stream to wait."""

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
        """A stand-in for ``torch.cuda.Stream``, of which there is only one."""

        def synchronize(self) -> None:
            device.wait()

        def query(self) -> bool:
            return device.done <= device.clock.now

        def record_event(self, recorded: Any = None) -> Any:
            recorded = event() if recorded is None else recorded
            recorded.record()
            return recorded

        def wait_event(self, awaited: Any) -> None:
            """Do nothing: there is only one stream to wait."""

        wait_stream = wait_event

    return Stream()


@contextlib.contextmanager
def simulate_device(function: Callable[..., Any], device: Device) -> Iterator[None]:
    """Make ``torch.cuda`` use this device, for one call of the student's function."""
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
    with _replaced(function, parts):
        yield


@contextlib.contextmanager
def without_device(function: Callable[..., Any]) -> Iterator[None]:
    """Make ``torch.cuda`` behave as on a machine without a GPU, for one call."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no CUDA device is available; these tensors are on the CPU")

    parts = {
        "Event": refuse,
        "synchronize": refuse,
        "current_stream": refuse,
        "is_available": lambda: False,
        "device_count": lambda: 0,
    }
    with _replaced(function, parts):
        yield


@contextlib.contextmanager
def _replaced(function: Callable[..., Any], parts: dict[str, Any]) -> Iterator[None]:
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
