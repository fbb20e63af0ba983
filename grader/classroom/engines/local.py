"""Submissions judged by processes of this machine."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from grader.classroom.messages import GradingRequest, SubmissionJudged, SubmissionLost, Told

__all__ = ["LocalEngine", "cores"]

#: How often an order is given to another worker when one has died over it.
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
    from grader.classroom.engines.work import work

    # all this stays, and the collector need not look through it again and again
    gc.freeze()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        pipe.send(_READY)
        while True:
            work(pipe.recv(), pipe.send)
