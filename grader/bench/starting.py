"""Ranks of our own on this machine, started and looked after.

They come from :mod:`multiprocessing`'s fork server, which imports torch once for
all of them.  They are neither recorded nor sealed off like the grader's: what is
measured here is the program and gloo alone.
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
from collections.abc import Callable, Iterator
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from grader.bench.plan import BenchPlan
from grader.bench.rank import measure
from grader.bench.table import Complaint, SizeRow
from grader.core.errors import RunFailed
from grader.core.program import NotDefined, Program, is_stub, load
from grader.core.source_locations import is_students, lines_of
from grader.core.values import short
from grader.core.verdict import Site

__all__ = ["ProgressWatchdog", "rows_of_own_ranks", "take_part"]


# How a rank gets into its group, and how it says what goes wrong there. -----------

#: Seconds that the transport waits beyond our own watch, which says more.
_SLACK = 60.0


def take_part(
    plan: BenchPlan,
    show: Callable[[SizeRow], None],
    complain: Callable[[Complaint], NoReturn],
    store: Any = None,
) -> None:
    """Be one of the ranks that measure; rank 0 shows the rows, any may complain.

    Args:
        plan: what to measure.
        show: takes a row.
        complain: takes what went wrong; it ends the process, or waits for its end.
        store: where ranks meet; what ``torchrun`` has set up if ``None``.
    """
    try:
        with _joined(plan, store) as device:
            _rows(plan, device, show, complain)
    except Exception as error:
        rank = int(os.environ["RANK"])
        complain(Complaint(rank, "lost", f"cannot reach the other ranks: {_reason(error)}"))


def _reason(error: Exception) -> str:
    """What the backend says, without the place in its own sources."""
    text = re.sub(r"\[(?:enforce fail at )?/\S+\] ", "", str(error))
    name = os.environ.get("GLOO_SOCKET_IFNAME")
    through = f" (GLOO_SOCKET_IFNAME is {name})" if name and name in text else ""
    return short(text, 300) + through


@contextlib.contextmanager
def _joined(plan: BenchPlan, store: Any) -> Iterator[torch.device]:
    """Be in the group while the block runs; the device to work on."""
    torch.set_num_threads(1)
    timeout = timedelta(seconds=plan.timeout + _SLACK)
    device = torch.device("cpu")
    if plan.backend == "nccl":
        # before the group is made: without it every rank would take device 0
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if store is None:
        dist.init_process_group(plan.backend, timeout=timeout)
    else:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group(
            plan.backend, store=store, rank=rank, world_size=size, timeout=timeout
        )
    try:
        # nobody begins before all have joined: the end of a program that fails at once would
        # break connections that others are still making
        dist.barrier()
        yield device
        dist.barrier()  # nobody leaves while others still send
    finally:
        dist.destroy_process_group()


def _rows(
    plan: BenchPlan,
    device: torch.device,
    show: Callable[[SizeRow], None],
    complain: Callable[[Complaint], NoReturn],
) -> None:
    rank = dist.get_rank()
    watch = ProgressWatchdog(rank, plan.timeout, complain)
    functions: dict[str, Callable[..., Any]] = {}
    try:
        watch.begin("loading the file")
        functions = _functions(plan)
        for row in measure(plan, functions, device, watch.begin):
            if rank == 0:
                show(row)
    except BaseException as error:
        complain(_complaint(rank, error, any(map(is_stub, functions.values()))))
    finally:
        watch.end()


def _functions(plan: BenchPlan) -> dict[str, Callable[..., Any]]:
    if plan.file is None:
        return {}
    loaded = load(Program.from_bytes(plan.program))
    return {name: loaded.entry(name) for name, _ in plan.contests}


def _complaint(rank: int, error: BaseException, unwritten: bool) -> Complaint:
    cause = error.__cause__ if isinstance(error, NotDefined) and error.__cause__ else error
    lines = lines_of(cause.__traceback__)
    site = str(Site(*lines[-1][:2])) if lines else ""
    if unwritten and isinstance(cause, NotImplementedError):
        return Complaint(rank, "raised", "is not written yet", site)
    text = short(str(cause), 300)
    if isinstance(cause, NotImplementedError) and not text:
        return Complaint(rank, "raised", "still raises NotImplementedError", site)
    what = f"{type(cause).__name__}: {text}" if text else type(cause).__name__
    return Complaint(rank, "raised", what, site)


class ProgressWatchdog:
    """Notices that a rank makes no progress, and says where it is.

    Args:
        rank: this one.
        seconds: that a step may take.
        complain: is told.
    """

    def __init__(self, rank: int, seconds: float, complain: Callable[[Complaint], None]) -> None:
        self._rank, self._seconds, self._complain = rank, seconds, complain
        self._main = threading.get_ident()
        self._news = threading.Condition()
        self._what: str | None = ""
        self._until = time.monotonic() + seconds
        threading.Thread(target=self._look, daemon=True, name="watch").start()

    def begin(self, what: str) -> None:
        """The next step, with all of the time."""
        with self._news:
            self._what, self._until = what, time.monotonic() + self._seconds
            self._news.notify()

    def end(self) -> None:
        """There is nothing more to watch."""
        with self._news:
            self._what = None
            self._news.notify()

    def _look(self) -> None:
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
        self._complain(Complaint(self._rank, "hung", text, self._site()))

    def _site(self) -> str:
        frame = sys._current_frames().get(self._main)
        while frame is not None:
            file = frame.f_code.co_filename
            # what starts us is a program in a string, and nobody's file
            if is_students(file) and not file.startswith("<"):
                return str(Site(file, frame.f_lineno))
            frame = frame.f_back
        return ""


# Starting ranks. ------------------------------------------------------------------

#: Seconds in which ranks must have started, on the slowest machine.
_START = 120.0

#: Seconds for others to complain as well, so that it is not chance who is named.
_GRACE = 2.0


def rows_of_own_ranks(plan: BenchPlan, size: int) -> Iterator[SizeRow]:
    """Start ``size`` ranks, and give rows as they come.

    Raises:
        RunFailed: a rank raised, died or hung; says which one, and where.
    """
    context: Any = multiprocessing.get_context("forkserver")
    # not our own modules: importing the grader in there would start its own fork server
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
        yield from _listen(plan, ranks)


def _end(process: Any) -> None:
    process.kill()
    process.join()


def _listen(plan: BenchPlan, ranks: list[tuple[Any, Connection]]) -> Iterator[SizeRow]:
    """What the ranks say, until all have ended well."""
    open_ends = {ours: rank for rank, (_, ours) in enumerate(ranks)}
    dead: dict[int, str] = {}
    complaints: dict[int, Complaint] = {}
    until = time.monotonic() + _START + plan.timeout
    while open_ends:
        ready = wait(list(open_ends), max(0.0, until - time.monotonic()))
        if not ready:
            break
        for ours in ready:
            assert isinstance(ours, Connection)
            rank = open_ends[ours]
            try:
                said = ours.recv()
            except EOFError:
                del open_ends[ours]
                process = ranks[rank][0]
                process.join()
                if process.exitcode:
                    dead[rank] = f"rank {rank}: the process {_ending(process.exitcode)}"
            else:
                if isinstance(said, Complaint):
                    complaints[rank] = said
                else:
                    until = time.monotonic() + plan.timeout + 2 * _GRACE
                    yield said
            if len(dead) + len(complaints) == 1:
                until = min(until, time.monotonic() + _GRACE)
    if dead or complaints or open_ends:
        raise RunFailed(_cause(dead, complaints, sorted(open_ends.values())), None)


def _cause(dead: dict[int, str], complaints: dict[int, Complaint], silent: list[int]) -> str:
    """The cause among its consequences: by kind, then by rank, never by time."""
    if dead:
        return dead[min(dead)]
    raised = [rank for rank, complaint in complaints.items() if complaint.kind == "raised"]
    if raised:
        return str(complaints[min(raised)])
    hung = sorted(rank for rank, complaint in complaints.items() if complaint.kind == "hung")
    if hung:
        # who waits for whom is seen from where all of them are
        places = (f"rank {rank} {complaints[rank].place}" for rank in hung)
        return f"{complaints[hung[0]].text}: {', '.join(places)}"
    if complaints:
        return str(complaints[min(complaints)])
    return f"no sign of life of rank {', '.join(map(str, silent))}"


def _ending(code: int) -> str:
    if code > 0:
        return f"exits with status {code}"
    with contextlib.suppress(ValueError):
        return f"is killed by {signal.Signals(-code).name}"
    return f"is killed by signal {-code}"


# In the ranks. --------------------------------------------------------------------


def _rank(plan: BenchPlan, rank: int, size: int, store: str, parent: Connection) -> NoReturn:
    from grader.rank import process_limits

    process_limits.die_with_parent()
    # with more ranks than processors, gloo would spin otherwise
    process_limits.let_others_finish()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends us
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    os.dup2(2, 1)  # what a student prints is no part of the table

    import torch.distributed as dist

    lock = threading.Lock()

    def say(what: SizeRow | Complaint) -> None:
        with lock:
            parent.send(what)

    def complain(complaint: Complaint) -> NoReturn:
        say(complaint)
        # who left would break the others' connections, and they would complain, too
        while True:
            threading.Event().wait()

    meeting = dist.FileStore(store, size)  # type: ignore[attr-defined]
    take_part(plan, say, complain, meeting)
    parent.close()
    # no atexit handlers of libraries: all is said
    os._exit(0)
