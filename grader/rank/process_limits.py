"""What the operating system is asked to hold a rank to."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

__all__ = [
    "die_with_parent",
    "let_others_finish",
    "limit_memory",
    "memory_now",
    "own_session",
    "remember_memory",
]


def own_session() -> None:
    """Leave the terminal's process group, so that the whole rank can be killed as one."""
    with contextlib.suppress(PermissionError):
        os.setsid()


def die_with_parent() -> None:
    """Linux: be killed when the parent dies.  Elsewhere the judge kills by process id."""
    if sys.platform != "linux":
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)


def let_others_finish() -> None:
    """Linux: from now on, this process and its children interrupt nobody when they wake up.

    gloo's thread finds its connection's lock taken and asks again at once, and
    again, until the lock is free.  Had it interrupted the thread that holds the
    lock, which it does where there are fewer processors than threads, it would
    ask in vain for as long as the scheduler lets it: milliseconds, and so at
    every message.  ``SCHED_BATCH`` (see ``sched(7)``) lets the other finish.
    """
    if sys.platform != "linux":
        return
    # It only makes worlds faster.  A container, an emulated kernel or a C library (musl has it
    # fail always) may refuse it; a fork server that ended here would run no world at all.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


#: Bytes of private writable memory, where they had to be measured beforehand.
_measured: int | None = None


def remember_memory() -> None:
    """Measure this process's memory now, for children that live without ``/proc``.

    To be called while there is one thread.  The kernel tells without ``/proc``
    as well: one more page is to be had just if the limit lies above what there
    is already.
    """
    global _measured
    import mmap
    import resource

    page = mmap.PAGESIZE
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    low, high = 0, 1 << 40
    try:
        while high - low > page:
            middle = (low + high) // 2 // page * page
            resource.setrlimit(resource.RLIMIT_DATA, (middle, hard))
            try:
                mmap.mmap(-1, page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
            except (OSError, MemoryError):
                low = middle
            else:
                high = middle
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    _measured = low


def memory_now() -> int:
    """Bytes of private writable memory that this process has, or had when measured."""
    if _measured is not None:
        return _measured
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")


def limit_memory(extra: int) -> None:
    """Let this process allocate at most ``extra`` bytes beyond what it has now.

    The limit is on private writable memory (``RLIMIT_DATA``), which is what
    ``malloc`` and torch's allocator take; torch's libraries alone map
    gigabytes that are never used, so a limit on addresses would say nothing.
    macOS does not enforce it.
    """
    if sys.platform != "linux" or extra <= 0:
        return
    import resource

    limit = memory_now() + extra
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
