"""Ranks of our own on this machine, started and looked after.

They come from :mod:`multiprocessing`'s fork server, which imports torch once for
all of them.  They are neither recorded nor sealed off like the grader's: what is
measured here is the program and gloo alone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from grader.bench.plan import Plan
from grader.bench.results import Complaint, Row
from grader.core.errors import RunFailed

__all__ = ["rows_of_own_ranks"]

#: Seconds in which ranks must have started, on the slowest machine.
_START = 120.0

#: Seconds for others to complain as well, so that it is not chance who is named.
_GRACE = 2.0


def rows_of_own_ranks(plan: Plan, size: int) -> Iterator[Row]:
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


def _listen(plan: Plan, ranks: list[tuple[Any, Connection]]) -> Iterator[Row]:
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


def _rank(plan: Plan, rank: int, size: int, store: str, parent: Connection) -> NoReturn:
    from grader.rank import process_limits

    process_limits.die_with_parent()
    # with more ranks than processors, gloo would spin otherwise
    process_limits.let_others_finish()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends us
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    os.dup2(2, 1)  # what a student prints is no part of the table

    import torch.distributed as dist

    from grader.bench.joining import take_part

    lock = threading.Lock()

    def say(what: Row | Complaint) -> None:
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
