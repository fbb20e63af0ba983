"""What an adapter can find out about a call of the student's; used inside the ranks.

An adapter makes the call of an exercise where that is more than passing
arguments.  These are its instruments: refuse some of torch's operations, count
the steps of the student's own code, pull a gradient back.
"""

from __future__ import annotations

import contextlib
import sys
import time
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType, FunctionType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from grader.core.source_locations import is_students
from grader.rank.recorder import ForbiddenCall

__all__ = [
    "Clock",
    "Device",
    "OnDevice",
    "differentiated",
    "on_device",
    "played",
    "refusing",
    "shown_to",
    "steps",
    "without_device",
]


# Operations, steps and gradients of a call. ----------------------------------------


class _Refusal(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raises when one of the named operations is about to run, by whatever name it is called."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would keep its compiler out of the method below, and to that end
        # import it: more than a second in every rank, for code that is not compiled
        return False

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.first: ForbiddenCall | None = None
        self._names = names

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__.rstrip("_")
        if name in self._names:
            error = ForbiddenCall(f"{name} is what this exercise asks you to write")
            self.first = self.first or error
            raise error
        return func(*args, **(kwargs or {}))


def refusing(names: frozenset[str], function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in which some of torch's operations may not be used.

    Args:
        names: of operators, without the namespace, the overload and the
            underscore of the in-place form: ``scatter_add``.
        function, arguments: the call.

    Raises:
        ForbiddenCall: one was used, even if the function caught the error.
    """
    mode = _Refusal(names)
    with mode:
        value = function(*arguments)
    if mode.first is not None:
        raise mode.first
    return value


def steps(function: Callable[..., Any], *arguments: Any) -> int:
    """How many lines of the student's own code a call runs, each turn of a loop counted.

    A comprehension or a loop on one line counts once a turn as well, and so
    does a generator, a lambda or a helper for each time that it is entered.
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


def differentiated(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    leaves: Mapping[str, int],
    cotangent: torch.Tensor,
) -> dict[str, Any]:
    """Call a function and pull a cotangent back through it.

    Args:
        function, arguments: the call.
        leaves: names and positions of the arguments whose gradients are wanted.
        cotangent: the gradient of some loss by the result.

    Returns:
        ``result``, and a ``gradient of NAME`` for every leaf: ``None`` where no
        gradient reaches it.

    Raises:
        RuntimeError: backward raised ``NotImplementedError``, which of the whole
            answer would mean that it is still the stub.
    """
    for place in leaves.values():
        arguments[place].requires_grad_()
    result = function(*arguments)
    found: dict[str, Any] = {"result": result}
    found |= {f"gradient of {name}": None for name in leaves}
    fits = isinstance(result, torch.Tensor) and result.shape == cotangent.shape
    if fits and result.requires_grad and result.dtype == cotangent.dtype:
        wanted = [arguments[place] for place in leaves.values()]
        # the gradient of this by the result is the cotangent, bit by bit; handing it to
        # autograd directly makes torch import its symbolic shapes, which takes a second
        product = (result * cotangent).sum()
        try:
            gradients = torch.autograd.grad(product, wanted, allow_unused=True)
        except NotImplementedError as error:
            # torch says so of a Function without a backward; the answer has been begun
            unwritten = RuntimeError(f"backward is not written yet: {error}")
            raise unwritten.with_traceback(error.__traceback__) from error
        found |= {f"gradient of {name}": g for name, g in zip(leaves, gradients, strict=True)}
    if isinstance(result, torch.Tensor):
        found["result"] = result.detach()
    return found


# A clock that an adapter sets. -----------------------------------------------------

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


# A device that an adapter simulates. -----------------------------------------------

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
