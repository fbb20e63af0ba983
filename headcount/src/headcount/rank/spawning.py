"""Processes that a person's script starts: those that are its ranks run in the ranks there are.

A script that starts its ranks itself, by ``mp.spawn`` or in a loop over ``Process``, does so in
each rank, and each does its own part in place.  There is no process that has started them all.
"""

from __future__ import annotations

import functools
import multiprocessing
import multiprocessing.connection
import multiprocessing.pool
import multiprocessing.queues
import os
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch.distributed as dist
import torch.multiprocessing

from headcount.core.source_locations import is_students, line_here
from headcount.core.verdict import counted
from headcount.rank.guard import current_recorder, other_count, remark

__all__ = ["close_in_children", "spawn_in_place"]


def close_in_children() -> None:
    """Let processes that the script forks ask for their rank's place, and communicate in no way.

    A ``Dataset`` often asks in a loader's worker.  The process group is connected once.
    """

    def close() -> None:
        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise RuntimeError(
                "this process was started by a rank, whose process group it cannot use; let `run"
                " --ranks N` start the ranks, or start them by mp.spawn, Process or a pool's map"
            )

        dist.init_process_group = refuse
        dist.distributed_c10d.init_process_group = refuse
        recorder = current_recorder()
        if recorder is not None:
            recorder.forked()

    os.register_at_fork(after_in_child=close)


def spawn_in_place(rank: int, size: int) -> None:
    """Let a script that starts its ranks itself run each of them in the rank that there is."""

    def in_place(real: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(real)
        def start(
            fn: Callable[..., Any], args: Any = (), nprocs: int = 1, *more: Any, **named: Any
        ) -> Any:
            if not _is_rank(fn):
                return real(fn, args, nprocs, *more, **named)
            own.require_count("mp.spawn", nprocs)
            own.do_part(fn, rank, *args)
            return _EndedRanks()

        return start

    for name in ("spawn", "start_processes"):
        real = getattr(torch.multiprocessing, name)
        setattr(torch.multiprocessing, name, in_place(real))
    own: Any = type("Process", (_RankProcess,), {"started": [], "rank": rank, "size": size})
    modules: tuple[Any, ...] = (torch.multiprocessing, multiprocessing)
    for module in modules:
        module.Process = _process_class(multiprocessing.Process, own, multiprocessing.__name__)
    context: Any = multiprocessing.context
    for name in multiprocessing.get_all_start_methods():  # what get_context returns has its own
        start = type(multiprocessing.get_context(name))
        start.Process = _process_class(start.Process, own, context.__name__)  # type: ignore[attr-defined]
        setattr(context, start.Process.__name__, start.Process)  # type: ignore[attr-defined]
    _end_where_results_are_collected(own)
    _run_in_place_of_a_pool(own)


#: What is remarked where the script would wait in vain.
_NO_PARENT = (
    "the script waits here for what the other ranks have sent to the process that started them, and"
    " `run` has no such process; these ranks have done their part, so it ends here. To run the rest"
    " as well, collect results by dist.gather_object"
)


def _end_where_results_are_collected(own: Any) -> None:
    """End the script where it waits for what other ranks send to the parent, which never comes.

    Another process of the script's, or another thread, may still send something.
    """
    this_process = os.getpid()

    def ending(real: Callable[..., Any], holds: Callable[[Any], bool]) -> Callable[..., Any]:
        def is_in_vain(channel: Any) -> bool:
            return not holds(channel) and not multiprocessing.active_children()

        @functools.wraps(real)
        def receive(channel: Any, *limits: Any, **named: Any) -> Any:
            lasts = limits in ((), (True,)) and named in ({}, {"block": True})
            mine = threading.current_thread() is threading.main_thread()
            if lasts and mine and os.getpid() == this_process and is_in_vain(channel):
                own.run()  # which may send something
                if own.is_over and is_in_vain(channel):
                    file, line, _ = line_here()
                    remark(_NO_PARENT, file, line)
                    raise SystemExit(0)
            return real(channel, *limits, **named)

        return receive

    def counts(queue: Any) -> bool:
        try:
            return bool(queue.qsize())
        except NotImplementedError:  # on macOS
            return True

    queues: Any = multiprocessing.queues
    queues.Queue.get = ending(queues.Queue.get, counts)
    queues.SimpleQueue.get = ending(queues.SimpleQueue.get, lambda queue: not queue.empty())
    connection: Any = multiprocessing.connection
    ends: weakref.WeakSet[Any] = weakref.WeakSet()
    pipe = connection.Pipe

    @functools.wraps(pipe)
    def noted(*args: Any, **kwargs: Any) -> Any:
        made = pipe(*args, **kwargs)
        ends.update(made)
        return made

    connection.Pipe = noted
    connection.Connection.recv = ending(
        connection.Connection.recv, lambda end: end not in ends or end.poll()
    )


def _run_in_place_of_a_pool(own: Any) -> None:
    """Do a rank's part where the script lets a pool of processes do that of all ranks.

    It ends there: what the pool would return comes from the other ranks as well.
    """

    def in_place(real: Callable[..., Any], spread: bool) -> Callable[..., Any]:
        @functools.wraps(real)
        def begin(pool: Any, func: Any, iterable: Any, *options: Any, **named: Any) -> Any:
            if not _is_rank(func):
                return real(pool, func, iterable, *options, **named)
            calls = list(iterable)
            own.require_count("the pool", len(calls))
            pool.terminate()  # its threads would look as if they might still do something
            pool.join()
            mine = calls[own.rank]
            func(*mine) if spread else func(mine)
            file, line, _ = line_here()
            remark(_NO_PARENT, file, line)
            raise SystemExit(0)

        return begin

    for name in ("map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async"):
        real = getattr(multiprocessing.pool.Pool, name)
        setattr(multiprocessing.pool.Pool, name, in_place(real, "star" in name))


class _EndedRanks:
    """What ``mp.spawn`` returns of ranks that have ended."""

    def join(self, *_: Any, **__: Any) -> bool:
        return True


def _is_rank(function: Any) -> bool:
    """Return whether a function that is to run in a process of its own is that of a rank."""
    return not dist.is_initialized() and _reaches(function, "init_process_group")


def _process_class(real: Any, own: Callable[..., Any], module: str) -> type:
    """Return a class of processes of which those that are the script's ranks are ``own``.

    A process that is spawned unpickles the class by the name of the real one in ``module``, and
    gets Python's own.
    """

    class Process(real):  # type: ignore[misc]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            target = kwargs.get("target", args[1] if len(args) > 1 else None)
            if cls is Process and _is_rank(target):
                return own(*args, **kwargs)
            return super().__new__(cls)

    Process.__module__ = module
    Process.__name__ = Process.__qualname__ = real.__name__
    return Process


class _RankProcess:
    """Stands for a process that a script starts as a rank; one of them runs in this process."""

    started: list[_RankProcess]
    rank: int
    size: int
    #: whether this process has done the part of its rank
    is_over = False

    def __init__(
        self, group: Any = None, target: Any = None, name: Any = None,
        args: Any = (), kwargs: Any = None, *, daemon: Any = None,
    ) -> None:  # fmt: skip
        self._call = (target, args, kwargs or {})
        self.exitcode: int | None = None
        self.pid = self.ident = os.getpid()
        self.daemon, self.name = bool(daemon), name or "rank"

    def start(self) -> None:
        self.started.append(self)

    def join(self, timeout: float | None = None) -> None:
        self.run()

    @classmethod
    def run(cls) -> None:
        """Do this rank's part, once all have been started."""
        ranks, cls.started = cls.started, []
        if not ranks:
            return
        cls.require_count("the script", len(ranks))
        for one in ranks:
            one.exitcode = 0
        target, args, kwargs = ranks[cls.rank]._call
        cls.do_part(target, *args, **kwargs)

    @classmethod
    def require_count(cls, what: str, asked: int) -> None:
        """Raise unless a script starts as many ranks as there are."""
        if not asked:
            raise RuntimeError(
                f"{what} starts no process, for want of GPUs: run it with --cuda available"
            )
        if asked != cls.size:
            mend = other_count(asked, cls.size)
            raise RuntimeError(f"{what} starts {counted(asked, 'rank')}: {mend}")

    @classmethod
    def do_part(cls, target: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call what a process of its own would, with which its process group would end as well."""
        try:
            target(*args, **kwargs)
        finally:
            cls.is_over = True
        if dist.is_initialized():
            dist.destroy_process_group()

    def is_alive(self) -> bool:
        return self.exitcode is None

    def terminate(self) -> None:
        pass

    kill = close = terminate


def _reaches(function: Any, name: str) -> bool:
    """Return whether a function of the script's names something, or one that it calls does."""
    seen: set[types.CodeType] = set()

    def names(code: types.CodeType) -> Iterator[str]:
        yield from code.co_names
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from names(constant)

    waiting = [function]
    while waiting:
        one = waiting.pop()
        code = getattr(one, "__code__", None)
        if code is None or code in seen or not is_students(code.co_filename):
            continue
        seen.add(code)
        for used in names(code):
            if used == name:
                return True
            called = one.__globals__.get(used)
            if isinstance(called, types.FunctionType):
                waiting.append(called)
    return False
