"""The program of a rank: it joins the group, loads the student's program, and answers calls.

A rank is forked from the fork server or started as an interpreter of its own; either way it is
given the file descriptors below, and exchanges messages of :mod:`headcount.core.wire` on the first.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import io
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NoReturn

import cloudpickle
import torch

from headcount.core.codec import pack, pack_answer, unpack
from headcount.core.events import Entered, Event, Inspected, Left, Polled, TookSet
from headcount.core.program import (
    LoadedProgram,
    Program,
    forget_modules,
    import_ahead,
    last_module,
    load,
    offer_modules,
)
from headcount.core.random_numbers import Generators
from headcount.core.set_orders import sets_of_rank
from headcount.core.source_locations import is_students, remember_thread_starts
from headcount.core.values import tensors_in
from headcount.core.wire import (
    DUMP_END,
    SIMULATOR,
    DumpStacks,
    FrameWriter,
    Inspect,
    Joined,
    Load,
    Perform,
    Performed,
    Put,
    Ready,
    Resolved,
    Resumed,
    Returned,
    RunCall,
    Setup,
    Simulate,
    StepCount,
    StoreEntry,
    StoreLookup,
    StoreSeen,
    read_frames,
)
from headcount.rank import guard, process_limits
from headcount.rank.calling import BoundArguments, aliases, raised, replaced, run, warnings_to
from headcount.rank.rank_store import RankStore
from headcount.rank.recorder import Recorder
from headcount.rank.recording_group import imitate_operators
from headcount.rank.threads import Threads
from headcount.rank.torch_startup import LEFT_OUT, defer_compiler, run_as_written, uncompiled
from headcount.rank.transports import (
    backend_in,
    gloo,  # noqa: F401 - loaded once, in the process that ranks are forked from
)

__all__ = ["Handles", "main", "prepare"]


@dataclass(frozen=True)
class Handles:
    """The file descriptors of a rank.

    Attributes:
        control: a stream socket to the judge.
        output: a pipe for the rank's standard output and error.
        faults: a pipe for Python's fault handler, which dumps where the rank crashed or hangs.
    """

    control: int
    output: int
    faults: int


def main(handles: Handles) -> NoReturn:
    """Serve calls until the judge closes the socket, and end the process."""
    _redirect(handles)
    defer_compiler()
    run_as_written()
    sock = socket.socket(fileno=handles.control)
    try:
        _Rank(sock, handles.faults).serve()
    finally:
        # no atexit handlers, no flushing of buffers that belong to the parent
        _leave(0)


def _redirect(handles: Handles) -> None:
    """Make the pipes the standard streams, at the level of file descriptors."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(handles.output, 1)
    os.dup2(handles.output, 2)
    os.close(handles.output)
    for name, fd in (("stdout", 1), ("stderr", 2)):
        raw = io.FileIO(fd, "w", closefd=False)
        stream = io.TextIOWrapper(
            _UnbufferedWriter(raw), "utf-8", "backslashreplace", write_through=True
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    faulthandler.enable(handles.faults)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, handles.faults, all_threads=True)
    _note_where_it_leaves(handles.faults)


#: The original of ``os._exit``, for our own use.
_leave = os._exit


def _note_where_it_leaves(faults: int) -> None:
    """Let this process dump the line at which it calls ``os._exit`` or kills itself.

    This cannot be done later: the one runs no handler, and the other cannot be handled.
    """
    mine, kill = os.getpid(), os.kill

    def exit_noting(status: int) -> NoReturn:
        if os.getpid() == mine:  # and not in a child that the student's code has forked
            faulthandler.dump_traceback(faults, all_threads=False)
        _leave(status)

    def kill_noting(pid: int, signal_number: int) -> None:
        if pid == mine == os.getpid() and signal_number == signal.SIGKILL:
            faulthandler.dump_traceback(faults, all_threads=False)
        kill(pid, signal_number)

    os._exit = exit_noting
    os.kill = kill_noting


class _UnbufferedWriter(io.BufferedWriter):
    """A writer that flushes every write, since a rank may exit or be killed at any moment."""

    def write(self, data: Any) -> int:
        written = super().write(data)
        self.flush()
        return written


class _Rank:
    """A rank's side of one world.

    Args:
        sock: through which the judge asks.
        faults: the pipe for dumps of stacks.
    """

    def __init__(self, sock: socket.socket, faults: int) -> None:
        self._faults = faults
        self._writer = FrameWriter(sock)
        self._frames = read_frames(sock)
        self._requests: queue.SimpleQueue[Load | RunCall] = queue.SimpleQueue()
        self._become: Callable[..., None]
        #: the number of ranks in the default group; 0 before there is one
        self._size = 0
        self._recorder: Recorder | None = None
        self._threads: Threads | None = None
        self._store: RankStore | None = None
        self._steps: StepCount | None = None
        #: the operations that it has asked about since its last other event
        self._polled: set[int] = set()
        self._device = torch.device("cpu")
        #: whether its ranks are simulated, as many as a request asks for
        self._simulates = False
        self._generators: Generators
        #: the rank in whose order sets are taken, if it is not their own
        self._set_orders: int | None = None

    def serve(self) -> None:
        setup = next(self._frames, None)
        if isinstance(setup, Perform):
            self._writer.write(_performed(setup))
        while isinstance(setup, Simulate):
            self._simulate(setup)
            setup = next(self._frames, None)
        if not isinstance(setup, Setup):
            return
        try:
            self._start(setup)
        except Exception as error:
            self._fail("join", error)
        self._writer.write(Joined())
        self._last_module = last_module()
        # the student's code must not run while others join: it could end their connections
        while True:
            request = self._requests.get()
            if isinstance(request, Load):
                loaded = self._load(request, setup)
                self._writer.write(Ready())
            else:
                self._answer(loaded, request)

    def _load(self, request: Load, setup: Setup) -> LoadedProgram:
        """Join a group of the requested size, and load the program as if for the first time."""
        assert self._recorder is not None
        assert self._store is not None
        if not self._recorder.subgroups:
            self._store.close()
        os.environ["WORLD_SIZE"] = str(request.size)
        try:
            if setup.script:
                guard.open_management(self._become, setup.rank, request.size)
            elif request.size != self._size:
                self._become(request.size)
                self._size = request.size
            forget_modules(self._last_module, is_students)
            self._set_orders = setup.rank if setup.set_orders else None
            sets_of_rank(self._set_orders)
            self._generators = Generators(setup.seed, self._device)
            program = Program.from_bytes(request.program)
            if setup.weighed and not program.live:
                import_ahead(program, request.wanted)
                self._recorder.pause()
            loaded = load(program, request.wanted)
            if setup.weighed and program.live:
                # unpickling it imports what it uses; a live function is checked by its own author
                self._recorder.pause()
            return loaded
        except BaseException as error:
            self._fail("load", error)

    def _simulate(self, request: Simulate) -> None:
        """Run simulated ranks, and send how they ended."""
        try:
            if not self._simulates:
                offer_modules(request.modules)
            # here, since no other process of a sandbox has what simulates ranks
            simulator = importlib.import_module(SIMULATOR)
            if not self._simulates:
                self._simulates = True
                simulator.prepare(request)
            finished = simulator.simulated(
                request, lambda answer: self._writer.write(answer, flush=False)
            )
        except Exception as error:
            # an exception of a rank is in the answer; this one is for want of memory, or a fault
            self._writer.write(raised("simulate", error))
        else:
            self._writer.write(finished)

    def _fail(self, stage: str, error: BaseException) -> NoReturn:
        """Report an exception, and wait until the judge closes the socket.

        A rank that exited would break the connections of those that still join, and it would
        be chance which failure is reported first.
        """
        self._writer.write(raised(stage, error))
        while True:
            time.sleep(60)  # the listening thread ends the process, or the launcher does

    def _start(self, setup: Setup) -> None:
        """Become rank ``setup.rank``: set limits and threads, and join the process group."""
        gc.enable()
        os.chdir(setup.folder)
        sys.path[:] = setup.path or sys.path
        os.environ.update(
            RANK=str(setup.rank),
            LOCAL_RANK=str(setup.rank),
            **setup.environment,
        )
        torch.set_num_threads(1)
        self._recorder = Recorder(setup.rank, self._emit)
        self._recorder.subgroups = setup.subgroups
        self._recorder.limited = not setup.script
        remember_thread_starts()
        self._store = RankStore(setup.rank, self._send, limited=not setup.script)
        self._threads = Threads(self._recorder, self._store.waits)
        listener = threading.Thread(target=self._listen, daemon=True, name="headcount")
        self._recorder.helpers.add(listener)
        listener.start()
        backend = backend_in(setup.transport)
        self._device = backend.device(setup.rank)
        if self._device.type != "cpu":
            # an answer that names no device has to work on all of them
            torch.set_default_device(self._device)
        self._threads.install()
        sizes = [*setup.smaller, setup.size]
        self._become = guard.join(
            self._store, setup.rank, sizes, self._recorder, backend, setup.collectives
        )
        # a GPU's driver maps far more than it uses
        if self._device.type == "cpu" and not setup.script:
            process_limits.limit_memory(setup.memory)
        if setup.sealed:
            process_limits.seal(setup.subgroups)
        if setup.script:
            self._flush_before_leaving()

    def _flush_before_leaving(self) -> None:
        """Let ``os._exit``, by which a script may end, first send what has been reported."""
        leave, mine = os._exit, os.getpid()

        def flush_and_leave(status: int) -> NoReturn:
            if os.getpid() == mine:  # and not in a child that the script has forked
                with contextlib.suppress(OSError):  # the judge may be gone
                    self._writer.flush()
            leave(status)

        os._exit = flush_and_leave

    def _emit(self, event: Event, flush: bool) -> None:
        # a program may ask ten thousand times a second, and the judge has to know it once
        if type(event) is not Polled:
            self._polled.clear()
        elif event.op in self._polled:
            return
        else:
            self._polled.add(event.op)
        if self._steps is None:
            self._writer.write(event, flush)
        else:
            self._send(event, flush)

    def _send(self, message: Event | StoreLookup | Put, flush: bool = True) -> None:
        """Write what counts as a step, or may; stop there if the judge kills this rank at it."""
        last = self._steps is not None and self._steps.reached(message)
        self._writer.write(message, flush or last)
        while last:
            time.sleep(60)  # the judge has been told, and kills this process

    def _listen(self) -> None:
        """Read from the judge while the student's code runs: it matches wildcards."""
        recorder, store, threads = self._recorder, self._store, self._threads
        assert recorder is not None
        assert store is not None
        assert threads is not None
        for frame in self._frames:
            if isinstance(frame, StoreEntry):
                store.receive(frame)
            elif isinstance(frame, StoreSeen):
                store.receive_seen(frame)
            elif isinstance(frame, Resolved):
                recorder.resolve(frame.op, frame.source)
            elif isinstance(frame, Resumed):
                recorder.go_on(frame.value)
            elif isinstance(frame, Inspect):
                written = self._writer.written
                if not self._writer.write(threads.inspect(), follows=written):
                    # a thread that has reported something meanwhile has gone on
                    self._writer.write(Inspected(True, [], []))
            elif isinstance(frame, DumpStacks):
                # this thread holds the interpreter's lock, so no stack changes meanwhile
                faulthandler.dump_traceback(self._faults, all_threads=True)
                os.write(self._faults, DUMP_END)
            elif isinstance(frame, (Load, RunCall)):
                if isinstance(frame, RunCall):
                    # the judge has done so, too, and sends no entry of this call before the call
                    store.forget(frame.held)
                self._requests.put(frame)
            del frame  # it may be large, and the next one may be long in coming
        # the judge has closed the socket, and waits for no result any more
        _leave(0)

    def _answer(self, loaded: LoadedProgram, call: RunCall) -> None:
        assert self._recorder is not None
        arguments = unpack(call.arguments, self._device)
        adapter = cloudpickle.loads(call.adapter) if call.adapter else None
        allowed = None if call.allowed is None else frozenset(call.allowed)
        self._recorder.begin(allowed, call.strict, call.watched)
        self._steps = None if call.killed_at is None else StepCount(call.killed_at)
        sets_of_rank(self._set_orders, lambda *place: self._emit(TookSet(*place), True))
        if call.replicas:
            from headcount.rank.replicas import ReplicaWatch  # few calls ask for it

            self._recorder.met = ReplicaWatch(self._recorder).met
        snapshots = self._recorder.snapshots
        stage = "call"
        given = [tensors_in(argument) for argument in arguments]
        try:
            bound = BoundArguments(loaded.entry(call.entry) if call.follows else None, self._device)
            if snapshots is not None:
                for place, tensors in enumerate(given):
                    snapshots.hold("argument", tensors, place)
            if call.delay:
                time.sleep(call.delay)  # before the call is reported to begin
            with _fill_new_memory() if call.watched else nullcontext():
                value, finished = self._time(loaded, call.entry, adapter, arguments)
            if snapshots is not None:
                snapshots.hold("result", tensors_in(value))
            stage = "pack"
            packed, omitted = pack_answer(value, call.answer_limit, self._device)
            # what is returned is shown, and in-place results where nothing is
            changes = bound.changes() if value is None else []
            reply = Returned(
                packed,
                pack(arguments, call.answer_limit, self._device),
                aliases(value, arguments),
                finished,
                replaced(given, arguments),
                omitted,
                self._generators.used(),
                changes,
                bound.unseen,
            )
        except BaseException as error:
            assert self._threads is not None
            unwritten, threads = loaded.unwritten(call.entry), self._threads.running()
            self._writer.write(raised(stage, loaded.explained(error), unwritten, threads))
        else:
            self._writer.write(reply)

    def _emit_uncompiled(self) -> None:
        assert self._recorder is not None
        if (place := uncompiled()) is not None:
            self._recorder.remark(LEFT_OUT, *place)

    def _time(self, loaded: LoadedProgram, *call: Any) -> tuple[Any, int]:
        """Make the call, report its begin and end, and return its value and its end."""
        assert self._threads is not None
        assert self._recorder is not None
        # the first is sent now: a rank that never communicates sends nothing else
        self._emit(Entered(time.monotonic_ns()), True)
        self._emit_uncompiled()
        try:
            with warnings_to(self._recorder.remark):
                value = run(loaded, *call)
                self._threads.finish()
            self._recorder.report_remarks()
        except BaseException:
            self._emit_uncompiled()
            self._recorder.report_remarks()
            self._emit(Left(True, time.monotonic_ns(), self._recorder.groups), False)
            raise
        finished = time.monotonic_ns()
        self._emit_uncompiled()
        self._emit(Left(False, finished, self._recorder.groups), False)
        return value, finished


@contextmanager
def _fill_new_memory() -> Iterator[None]:
    """Let torch fill with NaN the memory that ``torch.empty`` gives, or with the largest integer.

    Else a replay would say that a rank replaces what it holds, or stores what it receives, by what
    the memory happened to hold before.
    """
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def _performed(request: Perform) -> Performed:
    """Carry out a task that another package has in this process."""
    module, _, name = request.task.partition(":")
    task = getattr(importlib.import_module(module), name)
    process_limits.limit_memory(request.memory)
    if request.sealed:
        process_limits.seal(subgroups=False)
    return Performed(task(request.data))


def prepare() -> object:
    """Prepare an interpreter for ranks, before there are any; the result has to be kept."""
    process_limits.let_others_finish()
    return guard.override_dispatcher(), imitate_operators()


if __name__ == "__main__":
    kept = prepare()
    main(Handles(*map(int, sys.argv[1:4])))
