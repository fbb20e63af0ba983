"""Limits and settings of a rank's process that the operating system enforces."""

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
    """Ask Linux to kill this process when its parent dies; elsewhere the judge kills by id."""
    if sys.platform != "linux":
        return
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)


def let_others_finish() -> None:
    """Let this process and its children no longer preempt others when they wake up (Linux).

    gloo's thread polls the lock of its connection until the lock is free.  With fewer processors
    than threads it may preempt the very thread that holds the lock; it then polls in vain for
    its whole time slice of milliseconds, at every message.  Under ``SCHED_BATCH`` (see
    ``sched(7)``) the other thread finishes first.
    """
    if sys.platform != "linux":
        return
    # It only makes worlds faster.  A container, an emulated kernel or a C library (musl has it
    # fail always) may refuse it; a fork server that ended here would run no world at all.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


#: Bytes of private writable memory, if :func:`remember_memory` has measured them.
_measured: int | None = None


def remember_memory() -> None:
    """Measure this process's memory now, for children that live without ``/proc``.

    Call it while there is one thread.  It searches for the smallest ``RLIMIT_DATA`` under which
    the kernel still grants one more page.
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
    """Return the bytes of private writable memory that this process has, or had when measured."""
    if _measured is not None:
        return _measured
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")


def limit_memory(extra: int) -> None:
    """Let this process allocate at most ``extra`` bytes beyond what it has now.

    The limit is on private writable memory (``RLIMIT_DATA``), which ``malloc`` and torch's
    allocator use.  A limit on addresses would be useless, since torch's libraries alone map
    gigabytes that are never used.  macOS does not enforce it.
    """
    if sys.platform != "linux" or extra <= 0:
        return
    import resource

    limit = memory_now() + extra
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
