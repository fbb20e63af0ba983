"""What the operating system is asked to hold a rank to."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

__all__ = ["die_with_parent", "limit_memory", "own_session"]


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

    with open("/proc/self/statm") as statm:
        data_pages = int(statm.read().split()[5])
    limit = data_pages * os.sysconf("SC_PAGE_SIZE") + extra
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
