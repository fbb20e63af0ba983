"""One rank of a measurement: it calls, takes the time and checks the data; and how ranks start.

:func:`measure` works in any process group that is set up: by ``torchrun``, by the ranks
that are started here, by a test or in a notebook's ranks.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from grader.course.bench.plan import BenchPlan, RankFailure, SizeRow
from grader.course.costs import SHARED_OUT, algorithm_bandwidth, bus_bandwidth, share
from headcount.core.errors import RunFailed, signal_name
from headcount.core.program import LoadedProgram, NotDefined, Program, is_stub, load
from headcount.core.source_locations import is_students, lines_of
from headcount.core.values import short
from headcount.core.verdict import Site
from headcount.launch.launchers import has_one_thread

__all__ = [
    "Buffers",
    "Call",
    "ProgressWatchdog",
    "REDUCING",
    "ROOTED",
    "calls",
    "measure",
    "rows_of_own_ranks",
    "seconds_per_call",
    "take_part",
    "wrong_elements",
]


# How each collective is called, as torch's own and as an exercise, and its result. ----
#
# The data are small whole numbers, so that every sum is exact in every dtype and
# in every order, and an element is either right or wrong.

#: Collectives that add; the others only move data.
REDUCING = frozenset({"all_reduce", "reduce", "reduce_scatter"})

#: Collectives that have a root, which is rank 0 here.
ROOTED = frozenset({"broadcast", "reduce", "scatter", "gather"})

_SUM = dist.ReduceOp.SUM

#: Torch 2.13 renamed these and warns of the old names; 2.12 has no others.
_ALL_GATHER: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_REDUCE_SCATTER: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass
class Buffers:
    """The tensors that a rank calls a collective with.

    Attributes:
        op: the collective.
        rank, n: this rank, and the size of the group.
        part: this rank's part, or the whole tensor where it has no parts; one dimension.
        whole: all ``n`` parts after one another, or empty where the tensor has no parts.
    """

    op: str
    rank: int
    n: int
    part: torch.Tensor
    whole: torch.Tensor

    @classmethod
    def make(
        cls, op: str, rank: int, n: int, count: int, dtype: torch.dtype, device: torch.device
    ) -> Buffers:
        """Make buffers of zeros, for parts of ``count`` elements."""
        parts = n if op in SHARED_OUT else 0
        part = torch.zeros(count, dtype=dtype, device=device)
        whole = torch.zeros(count * parts, dtype=dtype, device=device)
        return cls(op, rank, n, part, whole)

    def fill(self, more: int = 0) -> None:
        """Write this rank's input.

        Args:
            more: added to each number.  A result that was made from larger numbers and
                is returned again is wrong in every element, moved or summed.
        """
        self.part.copy_(self._numbers(self.rank, len(self.part)).add_(more))
        if len(self.whole):
            self.whole.copy_(self._numbers(self.rank, len(self.whole)).add_(more))

    def expected(self) -> torch.Tensor | None:
        """Return this rank's result after ``fill()`` and a call, in one dimension.

        It is None where the collective defines no result on this rank.
        """
        op, rank, n, count = self.op, self.rank, self.n, len(self.part)
        if op in ("reduce", "gather") and rank != 0:
            return None
        if op in ("all_reduce", "reduce"):
            return self._added(slice(None))
        if op == "reduce_scatter":
            return self._added(slice(rank * count, (rank + 1) * count))
        if op == "broadcast":
            return self._numbers(0, count)
        if op == "send_recv":
            return self._numbers((rank - 1) % n, count)
        if op == "scatter":
            return self._numbers(0, count * n)[rank * count :][:count]
        if op == "all_to_all":
            mine = slice(rank * count, (rank + 1) * count)
            return torch.cat([self._numbers(r, count * n)[mine] for r in range(n)])
        return torch.cat([self._numbers(r, count) for r in range(n)])

    def _numbers(self, rank: int, count: int) -> torch.Tensor:
        # 127 is the largest sum that an int8 holds; bfloat16 is exact up to 256
        base = max(2, min(7, 1 + 127 // self.n))
        numbers = torch.arange(count, device=self.part.device).add_(3 * rank).remainder_(base)
        return numbers.to(self.part.dtype)

    def _added(self, place: slice) -> torch.Tensor:
        count = len(self.whole) or len(self.part)
        total = self._numbers(0, count)[place]
        for rank in range(1, self.n):
            total += self._numbers(rank, count)[place]
        return total


#: A function that calls a collective once, and returns the tensors that hold the result.
Call = Callable[[], Any]


def calls(buffers: Buffers, function: Callable[..., Any] | None, name: str = "") -> Call:
    """Return the call to be timed.

    Args:
        buffers: the tensors to call it with.
        function: a student's function, called as its exercise says; torch's own if None.
        name: name of the student's function.
    """
    return _torch_call(buffers) if function is None else _student_call(buffers, function, name)


def _torch_call(b: Buffers) -> Call:
    # these tensors are made once, outside the time that is taken
    spare, root = torch.zeros_like(b.part), b.rank == 0
    everything = torch.zeros_like(b.whole)
    parts = list(b.whole.chunk(b.n)) if len(b.whole) else []
    table: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: (dist.all_reduce(b.part), b.part)[1],
        "all_gather": lambda: (_ALL_GATHER(everything, b.part), everything)[1],
        "reduce_scatter": lambda: (_REDUCE_SCATTER(spare, b.whole), spare)[1],
        "all_to_all": lambda: (dist.all_to_all_single(everything, b.whole), everything)[1],
        "broadcast": lambda: (dist.broadcast(b.part, 0), b.part)[1],
        "reduce": lambda: (dist.reduce(b.part, 0), b.part)[1],
        "scatter": lambda: (dist.scatter(spare, parts if root else None, 0), spare)[1],
        "gather": lambda: (dist.gather(b.part, parts if root else None, 0), parts)[1],
        "send_recv": lambda: _receive_from_left(b, spare),
    }
    return table[b.op]


def _receive_from_left(b: Buffers, spare: torch.Tensor) -> torch.Tensor:
    requests = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, b.part, (b.rank + 1) % b.n),
            dist.P2POp(dist.irecv, spare, (b.rank - 1) % b.n),
        ]
    )
    for request in requests:
        request.wait()
    return spare


def _student_call(b: Buffers, function: Callable[..., Any], name: str) -> Call:
    spare, root = torch.zeros_like(b.part), b.rank == 0
    parts = list(b.whole.chunk(b.n)) if len(b.whole) else []
    table: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: (function(b.part, _SUM), b.part)[1],
        "all_gather": lambda: function(b.part),
        "reduce_scatter": lambda: function(parts, _SUM),
        "all_to_all": lambda: function(parts),
        "broadcast": lambda: (function(b.part, 0), b.part)[1],
        "reduce": lambda: (function(b.part, 0, _SUM), b.part)[1],
        "scatter": lambda: (function(spare, parts if root else None, 0), spare)[1],
        "gather": lambda: function(b.part, 0),
        "send_recv": (lambda: function(b.part, 1)) if name == "shift" else lambda: function(b.part),
    }
    return table[b.op]


def wrong_elements(expected: torch.Tensor | None, held: Any) -> int:
    """Return how many elements of a result are wrong: all, if its shape or dtype is."""
    if expected is None:
        return 0
    pieces: Sequence[Any] = held if isinstance(held, (list, tuple)) else [held]
    if not all(isinstance(piece, torch.Tensor) for piece in pieces):
        return expected.numel()
    whole = torch.cat([piece.flatten() for piece in pieces]) if pieces else torch.empty(0)
    if whole.shape != expected.shape or whole.dtype != expected.dtype:
        return expected.numel()
    return int((whole != expected).sum())


# Measuring on one rank. -----------------------------------------------------------


def measure(
    plan: BenchPlan,
    functions: dict[str, Callable[..., Any]],
    device: torch.device,
    begin: Callable[[str], None] = lambda what: None,
) -> Iterator[SizeRow]:
    """Measure what a plan asks for; every rank yields the same rows.

    Args:
        plan: what to measure.
        functions: the student's functions by name; where one is missing, torch's own is called.
        device: the device of the tensors.
        begin: a function that is called before each size, with a description of it.
    """
    rank, n = dist.get_rank(), dist.get_world_size()
    dtype: torch.dtype = getattr(torch, plan.dtype)
    for name, op in plan.functions:
        done = set()
        for asked in plan.sizes:
            count, nbytes = share(op, asked, dtype.itemsize, n)
            if nbytes in done:
                continue  # the smallest sizes are rounded up to one element a rank
            done.add(nbytes)
            begin(f"{name} of {nbytes} bytes")
            buffers = Buffers.make(op, rank, n, count, dtype, device)
            call = calls(buffers, functions.get(name), name)
            buffers.fill(more=1)
            seconds = seconds_per_call(call, plan.warmup, plan.iterations, device)
            # filled again, since sums in place have grown, and with other numbers, so that a
            # result that is left from the timed calls does not pass for this call's
            buffers.fill()
            held = call()
            wrong = _reduced_number(
                wrong_elements(buffers.expected(), held), dist.ReduceOp.SUM, device
            )
            yield SizeRow(
                name,
                op,
                nbytes,
                count,
                plan.dtype,
                "sum" if op in REDUCING else "none",
                0 if op in ROOTED else -1,
                seconds,
                algorithm_bandwidth(nbytes, seconds),
                bus_bandwidth(op, nbytes, seconds, n),
                int(wrong),
            )


def seconds_per_call(
    call: Callable[[], Any], warmup: int, iterations: int, device: torch.device
) -> float:
    """Return the mean seconds of a call on the slowest rank, the same number on every rank."""
    for _ in range(warmup):
        call()
    _synchronize(device)
    dist.barrier()
    _synchronize(device)
    started = time.perf_counter()
    for _ in range(iterations):
        call()
    _synchronize(device)
    mean = (time.perf_counter() - started) / iterations
    return _reduced_number(mean, dist.ReduceOp.MAX, device)


def _synchronize(device: torch.device) -> None:
    """Wait until the device has completed its work; a CPU always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _reduced_number(number: float, op: Any, device: torch.device) -> float:
    tensor = torch.tensor(number, dtype=torch.float64, device=device)
    dist.all_reduce(tensor, op=op)
    return float(tensor)


# How a rank joins its group, and how it reports a failure. ------------------------

#: Seconds that the transport waits beyond the watchdog, whose message says more.
_SLACK = 60.0


def take_part(
    plan: BenchPlan,
    show: Callable[[SizeRow], None],
    fail: Callable[[RankFailure], NoReturn],
    store: Any = None,
) -> None:
    """Join the group and measure, as one of its ranks.

    Args:
        plan: what to measure.
        show: a function that takes each row; it is called on rank 0.
        fail: a function that takes a failure of this rank and does not return: it ends
            the process, or waits to be ended.
        store: the store in which ranks meet; None for the one that ``torchrun`` has set up.
    """
    try:
        with _process_group(plan, store) as device:
            _rows(plan, device, show, fail)
    except Exception as error:
        rank = int(os.environ["RANK"])
        fail(RankFailure(rank, "lost", f"cannot reach the other ranks: {_reason(error)}"))


def _reason(error: Exception) -> str:
    """Return the backend's message, without the place in its own sources."""
    text = re.sub(r"\[(?:enforce fail at )?/\S+\] ", "", str(error))
    name = os.environ.get("GLOO_SOCKET_IFNAME")
    through = f" (GLOO_SOCKET_IFNAME is {name})" if name and name in text else ""
    return short(text, 300) + through


@contextlib.contextmanager
def _process_group(plan: BenchPlan, store: Any) -> Iterator[torch.device]:
    """Join the group while the block runs, and yield the device to work on."""
    torch.set_num_threads(1)
    timeout = timedelta(seconds=plan.timeout + _SLACK)
    device = torch.device("cpu")
    more: dict[str, Any] = {}
    if plan.backend == "nccl":
        # before the group is made: without it every rank would take device 0
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        more["device_id"] = device  # or torch guesses in the first barrier, and warns
    if store is not None:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        more |= {"store": store, "rank": rank, "world_size": size}
    dist.init_process_group(plan.backend, timeout=timeout, **more)
    try:
        # no rank begins before all have joined: the end of a program that fails at once would
        # break connections that other ranks are still making
        dist.barrier()
        yield device
        dist.barrier()  # no rank leaves while others still send
    finally:
        dist.destroy_process_group()


def _rows(
    plan: BenchPlan,
    device: torch.device,
    show: Callable[[SizeRow], None],
    fail: Callable[[RankFailure], NoReturn],
) -> None:
    rank = dist.get_rank()
    watch = ProgressWatchdog(rank, plan.timeout, fail)
    functions: dict[str, Callable[..., Any]] = {}
    loaded = LoadedProgram({})
    try:
        watch.begin("loading the file")
        if plan.file is not None:
            names = [name for name, _ in plan.functions]
            loaded = load(Program.from_bytes(plan.program), names)
            functions = {name: loaded.entry(name) for name in names}
        for row in measure(plan, functions, device, watch.begin):
            if rank == 0:
                show(row)
    except BaseException as error:
        stubs = any(map(is_stub, functions.values()))
        fail(_failure(rank, loaded.explained(error), stubs))
    finally:
        watch.end()


def _failure(rank: int, error: BaseException, unwritten: bool) -> RankFailure:
    cause = error.__cause__ if isinstance(error, NotDefined) and error.__cause__ else error
    lines = lines_of(cause.__traceback__)
    site = str(Site(*lines[-1][:2])) if lines else ""
    if unwritten and isinstance(cause, NotImplementedError):
        return RankFailure(rank, "raised", "is not written yet", site)
    text = short(str(cause), 300)
    if isinstance(cause, NotImplementedError) and not text:
        return RankFailure(rank, "raised", "still raises NotImplementedError", site)
    what = f"{type(cause).__name__}: {text}" if text else type(cause).__name__
    return RankFailure(rank, "raised", what, site)


class ProgressWatchdog:
    """A thread that reports a rank that makes no progress, and the line where it is.

    Args:
        rank: this rank.
        seconds: time that a step may take.
        fail: a function that takes the failure.
    """

    def __init__(self, rank: int, seconds: float, fail: Callable[[RankFailure], None]) -> None:
        self._rank, self._seconds, self._fail = rank, seconds, fail
        self._main = threading.get_ident()
        self._news = threading.Condition()
        self._what: str | None = ""
        self._until = time.monotonic() + seconds
        threading.Thread(target=self._watch, daemon=True, name="progress-watchdog").start()

    def begin(self, what: str) -> None:
        """Begin the next step, which has the full time."""
        with self._news:
            self._what, self._until = what, time.monotonic() + self._seconds
            self._news.notify()

    def end(self) -> None:
        """Stop watching."""
        with self._news:
            self._what = None
            self._news.notify()

    def _watch(self) -> None:
        with self._news:
            while self._what is not None:
                left = self._until - time.monotonic()
                if left <= 0:
                    break
                self._news.wait(left)
            what = self._what
        if what is None:
            return
        text = f"no end of {what} after {self._seconds:g} s"
        self._fail(RankFailure(self._rank, "hung", text, self._site()))

    def _site(self) -> str:
        frame = sys._current_frames().get(self._main)
        while frame is not None:
            file = frame.f_code.co_filename
            # the process was started by a program in a string, which is no file of the student's
            if is_students(file) and not file.startswith("<"):
                return str(Site(file, frame.f_lineno))
            frame = frame.f_back
        return ""


# Starting ranks of our own on this machine. ----------------------------------------
#
# They are forked from this process where it has a single thread, and otherwise come from
# :mod:`multiprocessing`'s fork server, so that torch is not imported once for each of them.  They
# are neither recorded nor sealed off like the grader's: what is
# measured here is the program and gloo alone.
#
# Not from ``torch.distributed.launcher``: it starts an interpreter for every rank, which
# imports torch by itself (four ranks and one size: 10.6 s beside 6.8 s in all, on two cores), and
# says of ranks that hang neither which they are nor on which line they wait.

#: Seconds in which ranks must have started, on the slowest machine.
_START = 120.0

#: Seconds in which other ranks may fail as well, so that the cause is not chosen by chance.
_GRACE = 2.0


def rows_of_own_ranks(plan: BenchPlan, size: int) -> Iterator[SizeRow]:
    """Start ``size`` ranks, and yield rows as they come.

    Raises:
        RunFailed: a rank raised, died or hung; the message says which one, and where.
    """
    context: Any = multiprocessing.get_context("fork" if has_one_thread() else "forkserver")
    # not the grader's modules: importing them there would start the grader's fork server
    context.set_forkserver_preload(["torch.distributed"])
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as undo:
        ranks = []
        for rank in range(size):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(
                target=_rank, args=(plan, rank, size, f"{folder}/store", theirs), daemon=True
            )
            process.start()
            theirs.close()
            undo.callback(_end, process)
            ranks.append((process, ours))
        yield from _rows_from_ranks(plan, ranks)


def _end(process: Any) -> None:
    process.kill()
    process.join()


def _rows_from_ranks(plan: BenchPlan, ranks: list[tuple[Any, Connection]]) -> Iterator[SizeRow]:
    """Yield the rows that ranks send, until all have ended well."""
    open_ends = {ours: rank for rank, (_, ours) in enumerate(ranks)}
    dead: dict[int, str] = {}
    failures: dict[int, RankFailure] = {}
    until = time.monotonic() + _START + plan.timeout
    while open_ends:
        ready = wait(list(open_ends), max(0.0, until - time.monotonic()))
        if not ready:
            break
        for ours in ready:
            assert isinstance(ours, Connection)
            rank = open_ends[ours]
            try:
                message = ours.recv()
            except EOFError:
                del open_ends[ours]
                process = ranks[rank][0]
                process.join()
                if process.exitcode:
                    dead[rank] = f"rank {rank}: the process {_ending(process.exitcode)}"
            else:
                if isinstance(message, RankFailure):
                    failures[rank] = message
                else:
                    until = time.monotonic() + plan.timeout + 2 * _GRACE
                    yield message
            if len(dead) + len(failures) == 1:
                until = min(until, time.monotonic() + _GRACE)
    if dead or failures or open_ends:
        raise RunFailed(_cause(dead, failures, sorted(open_ends.values())), None)


def _cause(dead: dict[int, str], failures: dict[int, RankFailure], silent: list[int]) -> str:
    """Return the cause among its consequences, chosen by kind, then by rank, never by time."""
    if dead:
        return dead[min(dead)]
    raised = [rank for rank, failure in failures.items() if failure.kind == "raised"]
    if raised:
        return str(failures[min(raised)])
    hung = sorted(rank for rank, failure in failures.items() if failure.kind == "hung")
    if hung:
        # the places of all of them show which rank waits for which
        places = (f"rank {rank} {failures[rank].place}" for rank in hung)
        return f"{failures[hung[0]].text}: {', '.join(places)}"
    if failures:
        return str(failures[min(failures)])
    return f"no sign of life of rank {', '.join(map(str, silent))}"


def _ending(code: int) -> str:
    if code > 0:
        return f"exits with status {code}"
    return f"is killed by {signal_name(-code)}"


# In the ranks. --------------------------------------------------------------------


def _rank(plan: BenchPlan, rank: int, size: int, store: str, parent: Connection) -> NoReturn:
    from headcount.rank import process_limits

    process_limits.die_with_parent()
    # with more ranks than processors, gloo would spin otherwise
    process_limits.let_others_finish()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and ends the ranks
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    os.dup2(2, 1)  # output of the student's code is no part of the table

    lock = threading.Lock()

    def send(message: SizeRow | RankFailure) -> None:
        with lock:
            parent.send(message)

    def fail(failure: RankFailure) -> NoReturn:
        send(failure)
        # leaving would break the other ranks' connections, and they would fail as well
        while True:
            threading.Event().wait()

    shared = dist.FileStore(store, size)  # type: ignore[attr-defined]
    take_part(plan, send, fail, shared)
    parent.close()
    # without the atexit handlers of libraries: all messages have been sent
    os._exit(0)
