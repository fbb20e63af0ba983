"""The threads of a rank, and whether they can go on by themselves.

A thread that waits for an operation has reported it.  The others are inspected when the judge
asks: a thread that waits for other threads of the process, without a time limit, cannot go on by
itself; every other one may, and so may one whose state cannot be determined.

Only Python's own ways to wait are recognised, each by the function that the thread is in and by
the state of what it waits for, which is correct at any moment: a condition (and so an event, a
queue, a semaphore, a future, an idle worker of a pool), ``join``, and a lock.  The locks of the C
library do not show which thread has acquired them and has yet to run, so :meth:`Threads.install`
replaces them by Python's own.  Where a thread may wait in C++, as for a communication hook that
``Join`` has called, the kernel is asked; see :func:`sleeping`.
"""

from __future__ import annotations

import _thread
import os
import platform
import queue
import signal
import sys
import threading
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch.futures import Future as TorchFuture

from headcount.core.events import Inspected
from headcount.core.source_locations import NAME, is_students, shorten_name
from headcount.rank.recorder import Recorder
from headcount.rank.requests import collect_all, report_comm_hooks, wait_all

__all__ = ["Lock", "Threads", "sleeping"]

#: Seconds between two checks, at the end of a call, whether its threads have ended.
_LOOK = 0.01


class Lock:
    """A ``threading.Lock`` that shows whether a thread has acquired it and knows that."""

    def __init__(self) -> None:
        self._block = _thread.allocate_lock()
        #: whether a thread holds it and knows that it does
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock, and return whether it was acquired."""
        taken = self._block.acquire(blocking, timeout)
        if taken:
            self._held = True
        return taken

    def release(self) -> None:
        """Release the lock; any thread may do so."""
        self._held = False
        self._block.release()

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._block.locked()

    __enter__ = acquire
    acquire_lock, release_lock, locked_lock = acquire, release, locked

    def __exit__(self, *_: object) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._block = _thread.allocate_lock()
        self._held = False


class _Unknown(NamedTuple):
    """A thread at an instruction that is no wait of Python's: it runs, or waits in C++."""

    frame: types.FrameType
    instruction: int


class Threads:
    """The threads of a rank.

    Args:
        recorder: the rank's recorder, which knows the threads that wait for operations.
        store_waits: by thread, the keys of the store that it waits for without a time limit.
    """

    def __init__(self, recorder: Recorder, store_waits: Mapping[int, list[str]]) -> None:
        self._recorder = recorder
        self._store_waits = store_waits
        #: by thread, the future that it waits for
        self._futures: dict[int, TorchFuture[Any]] = {}
        #: threads that have been started and have yet to run
        self._starting: set[object] = set()
        #: whether the student's function has returned, in the thread that called it
        self._returned = False
        self._joins = [threading.Thread.join.__code__]
        older = getattr(threading.Thread, "_wait_for_tstate_lock", None)  # before Python 3.13
        if older is not None:
            self._joins.append(older.__code__)

    def install(self) -> None:
        """Replace locks, queues, futures and hooks, before any student's code runs."""
        threading.Lock = Lock  # type: ignore[assignment]
        threading.RLock = threading._PyRLock  # type: ignore[attr-defined]
        queue.SimpleQueue = queue._PySimpleQueue  # type: ignore[attr-defined, misc]
        torch.futures.collect_all = collect_all
        torch.futures.wait_all = wait_all
        report_comm_hooks()
        TorchFuture.wait = self._noted(TorchFuture.wait)  # type: ignore[method-assign]
        start = _thread.start_new_thread

        def start_new_thread(
            function: Callable[..., object], args: Any, kwargs: Any = types.MappingProxyType({})
        ) -> int:
            token = object()

            def run() -> None:
                self._starting.discard(token)
                function(*args, **kwargs)

            self._starting.add(token)
            return start(run, ())

        _thread.start_new_thread = start_new_thread

    def _noted(self, wait: Callable[..., Any]) -> Callable[..., Any]:
        def noted(future: TorchFuture[Any]) -> Any:
            ident = threading.get_ident()
            self._futures[ident] = future
            try:
                return wait(future)
            finally:
                self._futures.pop(ident, None)

        return noted

    # Inspection. -------------------------------------------------------------

    def inspect(self) -> Inspected:
        """Return what the threads do that do not wait for operations.

        The threads run during the inspection, so each is looked at twice: a thread that is in
        the same wait both times was in it in between, and so there was a moment at which all
        were waiting.
        """
        acting = Inspected(True, [], [])
        first = self._look()
        if first is None:
            return acting
        natives = None
        if any(isinstance(held, _Unknown) for held in first.values()):
            natives = self._asleep_in_cpp()
            if natives is None:
                return acting
        second = self._look()
        if second is None or first.keys() != second.keys():
            return acting
        if not all(_is_same_wait(held, second[ident]) for ident, held in first.items()):
            return acting
        idle, store = [], []
        for ident, held in first.items():
            thread = self._recorder.thread(ident)
            if isinstance(held, _Unknown):
                idle.append((thread, *_place(held.frame)))
            elif isinstance(held, types.FrameType):
                idle.append((thread, *_place(held)))
            elif isinstance(held, list):
                store.append((thread, [key[-NAME:] for key in held], *_place(_frames()[ident])))
        callbacks = self._recorder.awaited_by_callbacks()
        return Inspected(False, idle, callbacks + (natives or []), store)

    def _asleep_in_cpp(self) -> list[list[int]] | None:
        """Return what may wake up threads that sleep in C++, or ``None`` if anything else may.

        It is any of the operations in flight.  All of them are collectives that other ranks have
        yet to call, so that the transport knows nothing of them, and cannot wake up a thread.
        """
        asleep = sleeping()
        if asleep is None:
            return None
        operations = self._recorder.gated()
        if not operations or sleeping() != asleep:
            return None
        return [[op] for op in operations]

    def _look(self) -> dict[int, object] | None:
        """Return the wait of each thread, or ``None`` if one may go on by itself."""
        waits, recorder = self._recorder.waits, self._recorder
        if self._starting or threading._limbo or _alarmed():  # type: ignore[attr-defined]
            return None
        if self._returned and self._unfinished_thread() is None:
            return None  # the thread that has called the function is about to go on
        frames = _frames()
        found: dict[int, object] = {}
        for ident, frame in frames.items():
            if frame is None or self._is_ours(ident):
                continue
            waiting = waits.get(ident)
            if waiting is not None:
                if not recorder.in_flight(waiting.op):
                    return None
                found[ident] = waiting
            elif ident in self._store_waits:
                found[ident] = self._store_waits[ident]
            elif self._is_idle(ident, frame, frames):
                found[ident] = frame
            else:
                found[ident] = _Unknown(frame, frame.f_lasti)
        return found

    def _is_ours(self, ident: int) -> bool:
        if ident == self._recorder.main:
            return self._returned
        return threading._active.get(ident) in self._recorder.helpers  # type: ignore[attr-defined]

    def _is_idle(self, ident: int, frame: types.FrameType, frames: dict[int, Any]) -> bool:
        """Return whether a thread waits for others of the process, without a time limit."""
        future = self._futures.get(ident)
        if future is not None:
            return not TorchFuture.done(future)
        code = frame.f_code
        if code is threading.Condition.wait.__code__:
            mine = frame.f_locals
            # until it has released the lock, it may let another thread go on; notifying takes
            # a thread off the list of waiters before it does anything else
            blocks = "saved_state" in mine and mine["timeout"] is None
            return blocks and mine["waiter"] in mine["self"]._waiters
        if code in self._joins:
            mine = frame.f_locals
            thread = mine["self"]
            alive = thread.ident in frames and _active(thread)
            return alive and mine["timeout"] in (None, -1)
        if code is Lock.acquire.__code__:
            mine = frame.f_locals
            return bool(mine["self"]._held and mine["blocking"] and mine["timeout"] == -1)
        if code is threading._PyRLock.acquire.__code__:  # type: ignore[attr-defined]
            mine = frame.f_locals
            owner = mine["self"]._owner
            others = owner is not None and owner != ident
            return bool(others and mine["blocking"] and mine["timeout"] == -1)
        return False

    # The end of a call. ------------------------------------------------------

    def finish(self) -> None:
        """Wait for the threads of a call whose function has returned, as Python does at exit.

        This does not wait for daemons, nor for threads that wait for others of the process, such
        as the workers of a pool.
        """
        if threading.active_count() == 1:
            return
        self._returned = True
        try:
            while (thread := self._unfinished_thread()) is not None:
                thread.join(_LOOK)
        finally:
            self._returned = False

    def running(self) -> bool:
        """Return whether threads other than this one and ours still run."""
        mine = threading.get_ident()
        others = sys._current_frames().keys() - {mine}
        return bool(self._starting) or not all(map(self._is_ours, others))

    def _unfinished_thread(self) -> threading.Thread | None:
        frames = _frames()
        for thread in threading.enumerate():
            if thread.daemon or thread.ident is None or self._is_ours(thread.ident):
                continue
            frame = frames.get(thread.ident)
            if frame is None or not self._is_idle(thread.ident, frame, frames):
                return thread
        return None


def _frames() -> dict[int, types.FrameType | None]:
    """Return the frame of each thread, but that of this one.

    A frame that held itself, in a dictionary among its variables, would keep the variables of all
    its callers until a garbage collection: whatever the student's function has returned.
    """
    frames: dict[int, types.FrameType | None] = {**sys._current_frames()}
    frames[threading.get_ident()] = None
    return frames


def _is_same_wait(one: object, other: object) -> bool:
    """Return whether two looks at a thread have found one and the same wait."""
    return one == other if isinstance(one, _Unknown) else one is other


def _active(thread: threading.Thread) -> bool:
    """Return whether a thread still runs, and its number has not passed to a later one."""
    return threading._active.get(thread.ident) is thread  # type: ignore[attr-defined]


def _alarmed() -> bool:
    """Return whether an alarm is set, whose signal handler may be the student's."""
    return hasattr(signal, "getitimer") and signal.getitimer(signal.ITIMER_REAL)[0] > 0


def _place(frame: types.FrameType | None) -> tuple[str, int]:
    """Return the file and line of the student's code that a thread is at, if any."""
    while frame is not None:
        if is_students(frame.f_code.co_filename):
            return shorten_name(frame.f_code.co_filename), frame.f_lineno
        frame = frame.f_back
    return "", 0


# Native threads, on Linux. ----------------------------------------------------------

# Python's own waits show in the frames of its threads; one in C++ does not, and it may be of a
# thread that runs no Python. The kernel tells what every thread waits for. One that waits, without
# a time limit, for a futex of its own process can only be woken up by another thread of that
# process: no file, no clock, no other process and no kernel does so.

TASKS = "/proc/self/task"

#: The name of gloo's thread that waits for the network.
_GLOO = "gloo_tcp_loop"

#: The number of the system call ``futex`` on this processor; it is not known on others.
_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())

#: Parts of its second argument: the operation, and flags; see ``linux/futex.h``.
_PRIVATE, _CLOCK, _WAIT, _WAIT_BITSET = 128, 256, 0, 9


def sleeping() -> dict[str, tuple[str, ...]] | None:
    """Return the wait of each other native thread, or ``None`` if one may go on by itself.

    Gloo's thread that waits for the network is left out.

    Two equal answers, one after the other, mean that there was a moment between them at which all
    threads slept: a wait holds the number of times that its thread has given up the processor.
    The answer is ``None`` too where the kernel does not tell, as on macOS and in a sandbox.
    """
    if sys.platform != "linux":
        return None
    found, mine = {}, str(threading.get_native_id())
    try:
        for task in os.listdir(TASKS):
            if task == mine or _read(task, "comm").strip() == _GLOO:
                continue
            call = tuple(_read(task, "syscall").split())
            if not _waits_for_a_thread(call):
                return None
            switches = [line for line in _read(task, "status").splitlines() if "ctxt" in line]
            found[task] = (*call, *switches)
    except (OSError, ValueError):
        return None  # a thread has ended meanwhile, or there is no such file
    return found


def _read(task: str, name: str) -> str:
    with open(f"{TASKS}/{task}/{name}", encoding="ascii", errors="replace") as file:
        return file.read()


def _waits_for_a_thread(call: tuple[str, ...]) -> bool:
    """Return whether a line of ``/proc/…/syscall`` shows an endless wait for a private futex."""
    if len(call) < 5 or call[0] != _FUTEX:
        return False
    operation, limit = int(call[2], 16), int(call[4], 16)
    endless = limit == 0 and bool(operation & _PRIVATE)
    return endless and operation & ~(_PRIVATE | _CLOCK) in (_WAIT, _WAIT_BITSET)
