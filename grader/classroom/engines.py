"""Where submissions are judged: processes of this machine, or a cluster's.

An engine takes orders and gives what is told of them.  It judges nothing and
stores nothing, so engines differ in nothing that a student could notice.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol

from grader.classroom.messages import (
    GradingRequest,
    SubmissionJudged,
    SubmissionLost,
    Told,
    Workers,
)
from grader.core.errors import RequestError, WorldError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["DaskEngine", "Engine", "LocalEngine", "connect", "cores", "slurm"]


class Engine(Protocol):
    """Judges submissions side by side."""

    def run(
        self, orders: Iterable[GradingRequest]
    ) -> Iterator[Told | SubmissionJudged | SubmissionLost | Workers]:
        """Yield what happens to the requests, as it happens; the last of each is its end.

        Orders are taken when there is somebody to work on them, so they may
        be made one by one.
        """
        ...

    def close(self) -> None:
        """Stop all work."""
        ...


# Processes of this machine. -------------------------------------------------------

#: How often an order is tried: a worker that dies over it may have died for another reason.
_TRIES = 2

#: Seconds in which workers must have tidied up and ended, before they are killed.
_PATIENCE = 10.0

#: What a worker says once, as soon as it listens.
_READY = "ready"


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class LocalEngine:
    """Workers that judge one submission after the other.

    A worker runs no stranger's code itself, so it is used again; every
    submission has a sandbox of its own.

    Args:
        jobs: how many workers; as many as processors if not given.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = jobs or cores()
        self._workers: list[_Worker] = []

    def run(
        self, orders: Iterable[GradingRequest]
    ) -> Iterator[Told | SubmissionJudged | SubmissionLost]:
        """See :class:`grader.classroom.engines.Engine`."""
        coming = iter(orders)
        again: list[tuple[GradingRequest, int]] = []
        while True:
            self._employ(coming, again)
            busy = [worker for worker in self._workers if worker.order is not None]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy])
            for worker in busy:
                if worker.pipe not in ready:
                    continue
                try:
                    told = worker.hear()
                except (EOFError, OSError):
                    self._workers.remove(worker)
                    order, tries, why = worker.bury()
                else:
                    if told is not None:
                        yield told
                    continue
                if tries < _TRIES:
                    again.append((order, tries))
                else:
                    yield SubmissionLost(
                        order.key, f"the process that judged it ended twice: {why}"
                    )

    def _employ(
        self, coming: Iterator[GradingRequest], again: list[tuple[GradingRequest, int]]
    ) -> None:
        """Give every idle worker an order, while there are orders."""
        while True:
            idle = next((worker for worker in self._workers if worker.order is None), None)
            if idle is None and len(self._workers) >= self._jobs:
                return
            if again:
                order, tries = again.pop()
            else:
                following = next(coming, None)
                if following is None:
                    return
                order, tries = following, 0
            if idle is None:
                idle = _Worker()
                self._workers.append(idle)
            idle.give(order, tries + 1)

    def close(self) -> None:
        """Stop all work."""
        for worker in self._workers:
            worker.stop()
        until = time.monotonic() + _PATIENCE
        for worker in self._workers:
            worker.end(until)
        self._workers.clear()


class _Worker:
    """One process, and what it is busy with.

    It imports torch before it listens.  An order is larger than a pipe, so whoever
    sent one before that would wait for the import, and the workers would start one
    after the other; hence an order is kept until its worker says that it is ready.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=False)
        with _without_interrupts():
            self._process.start()
        theirs.close()
        self.order: GradingRequest | None = None
        self._tries = 0
        self._ready = False

    def give(self, order: GradingRequest, tries: int) -> None:
        """Have it carry out an order, at once or as soon as it listens."""
        self.order, self._tries = order, tries
        if self._ready:
            self._send()

    def _send(self) -> None:
        # one that has died does not hear; its end is noticed when it is read from
        with contextlib.suppress(OSError):
            self.pipe.send(self.order)

    def hear(self) -> Told | SubmissionJudged | SubmissionLost | None:
        """The next it tells of its order, if that is what it says.

        Raises:
            EOFError, OSError: it has died.
        """
        told: Told | SubmissionJudged | SubmissionLost | str = self.pipe.recv()
        if isinstance(told, str):
            self._ready = True
            self._send()
            return None
        if isinstance(told, (SubmissionJudged, SubmissionLost)):
            self.order = None
        return told

    def bury(self) -> tuple[GradingRequest, int, str]:
        """What a dead worker was busy with, how often that was tried, and how it died."""
        self._process.join()
        self.pipe.close()
        assert self.order is not None
        code = self._process.exitcode or 0
        why = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return self.order, self._tries, why

    def stop(self) -> None:
        """Ask it to end: an idle one hears that nobody is there any more."""
        if self.order is not None:
            self._process.terminate()
        self.pipe.close()

    def end(self, until: float) -> None:
        """Wait for its end, and bring it about where it does not come."""
        self._process.join(max(until - time.monotonic(), 0))
        self._process.kill()
        self._process.join()


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keep Ctrl-C from a process that is started here, until it has made up its mind."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection[Any, Any]) -> None:
    """In the worker: judge what comes until the pipe is closed."""
    from grader.rank.process_limits import die_with_parent

    # whoever gives the orders is killed: then nobody hears what is found here
    die_with_parent()
    # Ctrl-C is for the one that gives the orders
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # ended politely, it ends what it has started, and removes what it has written
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    from grader.classroom.grading import work

    # all this stays, and the collector need not look through it again and again
    gc.freeze()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        pipe.send(_READY)
        while True:
            work(pipe.recv(), pipe.send)


# A Dask cluster: other machines, or SLURM's. --------------------------------------
#
# Every Dask worker needs what this machine needs to grade: the course, its packages,
# and bubblewrap.  Requests carry the files, so the workers need no shared folder.

#: The program that carries out one order; see :func:`grader.classroom.grading.main`.
_WORK = "grader.classroom.grading"

#: Seconds in which a scheduler must answer.
_ANSWER = 10

#: Seconds between two looks at how many workers there are, while none has ended its order.
_LOOK = 1.0

#: Orders beyond those at work that wait in the cluster already, for each worker.
_AHEAD = 1


class DaskEngine:
    """Workers of a Dask cluster, each with one submission at a time.

    Args:
        client: of the cluster.
        cluster: to be closed with it, if it is our own.
    """

    def __init__(self, client: Client, cluster: Any = None) -> None:
        self._client = client
        self._cluster = cluster
        self._address = client.scheduler.address if client.scheduler is not None else "?"

    def run(
        self, orders: Iterable[GradingRequest]
    ) -> Iterator[Told | SubmissionJudged | SubmissionLost | Workers]:
        """See :class:`grader.classroom.engines.Engine`.

        Raises:
            WorldError: the scheduler has ended.
        """
        try:
            yield from self._run(orders)
        except (OSError, CancelledError) as error:
            # it would go on to tell of every attempt to reach it
            logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
            raise WorldError(
                f"the Dask scheduler at {self._address} does not answer any more;"
                " every verdict so far is stored: start it and grade again"
            ) from error

    def _run(
        self, orders: Iterable[GradingRequest]
    ) -> Iterator[Told | SubmissionJudged | SubmissionLost | Workers]:
        import distributed

        coming = iter(orders)
        given: dict[Any, str] = {}
        following = next(coming, None)
        threads = -1
        while following is not None or given:
            # asked each time: a queue may start workers late, and end them early
            before, threads = threads, self._threads()
            if threads != before:
                yield Workers(threads)
            while following is not None and len(given) < max(threads * (1 + _AHEAD), 1):
                given[self._submit(following)] = following.key
                following = next(coming, None)
            try:
                ended = distributed.wait(
                    list(given), timeout=_LOOK, return_when="FIRST_COMPLETED"
                ).done
            except (TimeoutError, asyncio.TimeoutError):  # one and the same from Python 3.11 on
                continue
            for future in ended:
                key = given.pop(future)
                if future.status == "cancelled":
                    raise CancelledError
                if future.status == "finished":
                    yield from future.result()
                else:
                    yield SubmissionLost(key, f"the cluster failed at it: {future.exception()}")

    def _submit(self, order: GradingRequest) -> Any:
        with warnings.catch_warnings():
            # of "large graphs": a submission's files are what has to travel
            warnings.simplefilter("ignore", UserWarning)
            # pure=False: the same files are judged again when that is asked for
            return self._client.submit(carry_out, order, pure=False, retries=_TRIES - 1)

    def _threads(self) -> int:
        """How many submissions the cluster can judge at a time, now."""
        return sum(self._client.nthreads().values())

    def close(self) -> None:
        """Stop all work."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def carry_out(order: GradingRequest) -> list[Told | SubmissionJudged | SubmissionLost]:
    """In a Dask worker: one submission, in a process of its own.

    A Dask worker runs tasks in threads, and may not start processes by
    ``multiprocessing``; a judge wants a process to itself.
    """
    done = subprocess.run(
        [sys.executable, "-m", _WORK],
        input=pickle.dumps(order),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = f"status {done.returncode}" + "".join(f": {line}" for line in last)
        return [SubmissionLost(order.key, f"the process that judged it ended: {why}")]
    told: list[Told | SubmissionJudged | SubmissionLost] = pickle.loads(done.stdout)
    return told


def connect(scheduler: str | None, jobs: int | None) -> DaskEngine:
    """An engine on the cluster at an address, or on one of this machine.

    Raises:
        RequestError: Dask is not installed, or nobody answers.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise RequestError(_INSTALL) from None
    if scheduler is None:
        cluster = LocalCluster(
            n_workers=jobs or cores(), threads_per_worker=1, dashboard_address=":0"
        )
        return DaskEngine(Client(cluster), cluster)
    try:
        return DaskEngine(Client(scheduler, timeout=_ANSWER))
    except (OSError, ValueError) as error:
        raise RequestError(f"no Dask scheduler answers at {scheduler}: {error}") from None


def slurm(jobs: int | None, **settings: Any) -> DaskEngine:
    """An engine on a SLURM cluster.

    Args:
        jobs: how many of SLURM's; what a job is (queue, cores, memory, time)
            stands in dask-jobqueue's configuration,
            https://jobqueue.dask.org/en/latest/clusters-configuration.html
        settings: what shall not be as in the configuration.

    Raises:
        RequestError: this is no place to submit jobs from, or dask-jobqueue is
            not installed or not configured.
    """
    try:
        import dask
        from dask_jobqueue.slurm import SLURMCluster
        from distributed import Client
    except ImportError:
        raise RequestError(_INSTALL) from None
    if shutil.which("sbatch") is None:
        raise RequestError("sbatch is not installed here; grade where SLURM jobs are submitted")
    for needed in ("cores", "memory"):
        if not settings.get(needed) and not dask.config.get(f"jobqueue.slurm.{needed}", None):
            raise RequestError(
                f"dask-jobqueue is not configured for this cluster: its {needed} are not set;"
                " see docs/grading.md for an example"
            )
    # no page to look at: its port would have to be free
    cluster = SLURMCluster(scheduler_options={"dashboard_address": ":0"}, **settings)
    cluster.scale(jobs=jobs or 1)
    return DaskEngine(Client(cluster), cluster)


_INSTALL = "Dask is not installed: pip install 'gather-round[class]'"
