"""Submissions judged by processes of this machine."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from grader.classroom.orders import Done, Lost, Order, Told

__all__ = ["LocalEngine", "cores"]

#: How often an order is given to another worker when one has died over it.
_TRIES = 2


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

    def run(self, orders: Iterable[Order]) -> Iterator[Told | Done | Lost]:
        """See :class:`grader.classroom.engines.Engine`."""
        coming = iter(orders)
        again: list[tuple[Order, int]] = []
        while True:
            self._employ(coming, again)
            busy = [worker for worker in self._workers if worker.order is not None]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy])
            for worker in busy:
                if worker.pipe not in ready:
                    continue
                told = worker.hear()
                if told is not None:
                    yield told
                    continue
                self._workers.remove(worker)
                order, tries, why = worker.bury()
                if tries < _TRIES:
                    again.append((order, tries))
                else:
                    yield Lost(order.key, f"the process that judged it ended twice: {why}")

    def _employ(self, coming: Iterator[Order], again: list[tuple[Order, int]]) -> None:
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
            worker.end()
        self._workers.clear()


class _Worker:
    """One process, and what it is busy with."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=False)
        self._process.start()
        theirs.close()
        self.order: Order | None = None
        self._tries = 0

    def give(self, order: Order, tries: int) -> None:
        self.order, self._tries = order, tries
        # one that has died does not hear; its end is noticed when it is read from
        with contextlib.suppress(OSError):
            self.pipe.send(order)

    def hear(self) -> Told | Done | Lost | None:
        """The next it tells; nothing if it has died."""
        try:
            told: Told | Done | Lost = self.pipe.recv()
        except (EOFError, OSError):
            return None
        if isinstance(told, (Done, Lost)):
            self.order = None
        return told

    def bury(self) -> tuple[Order, int, str]:
        """What a dead worker was busy with, how often that was tried, and how it died."""
        self._process.join()
        self.pipe.close()
        assert self.order is not None
        code = self._process.exitcode or 0
        why = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return self.order, self._tries, why

    def end(self) -> None:
        self.pipe.close()
        if self.order is None:
            # it hears that, and ends what it has started
            self._process.join(5)
        self._process.terminate()
        self._process.join(5)
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection[Any, Any]) -> None:
    """In the worker: judge what comes until the pipe is closed."""
    from grader.worlds.limits import die_with_parent

    # whoever gives the orders is killed: then nobody hears what is found here
    die_with_parent()
    # Ctrl-C is for the one that gives the orders
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # ended politely, it closes its sandbox
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    from grader.classroom.engines.work import work

    # all this stays, and the collector need not look through it again and again
    gc.freeze()
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        work(order, pipe.send)
