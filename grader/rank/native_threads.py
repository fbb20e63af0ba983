"""Whether all threads of this process sleep until another of them wakes them up, on Linux.

Python's own waits show in the frames of its threads; one in C++ does not, and it may be of a
thread that runs no Python.  The kernel tells what every thread waits for.  One that waits, without
a time limit, for a futex of its own process can only be woken up by another thread of the process:
no file, no clock, no other process and no kernel does so.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Container

__all__ = ["sleeping"]

_TASKS = "/proc/self/task"

#: The name of gloo's thread that waits for the network.
_GLOO = "gloo_tcp_loop"

#: The number of the system call ``futex`` on this processor; it is not known on others.
_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(platform.machine())

#: Parts of its second argument: the operation, and flags; see ``linux/futex.h``.
_PRIVATE, _CLOCK, _WAIT, _WAIT_BITSET = 128, 256, 0, 9


def sleeping(without: Container[int | None]) -> dict[str, tuple[str, ...]] | None:
    """Return the wait of each native thread, or ``None`` if one may go on by itself.

    Two equal answers, one after the other, mean that there was a moment between them at which all
    threads slept: a wait holds the number of times that its thread has given up the processor.
    The answer is ``None`` too where the kernel does not tell, as on macOS and in a sandbox.

    Args:
        without: native numbers of threads that are left out, as is gloo's thread that waits for
            the network.
    """
    if sys.platform != "linux":
        return None
    found = {}
    try:
        for task in os.listdir(_TASKS):
            if int(task) in without or _read(task, "comm").strip() == _GLOO:
                continue
            call = tuple(_read(task, "syscall").split())
            if not _waits_for_a_thread(call):
                return None
            switches = [line for line in _read(task, "status").splitlines() if "ctxt" in line]
            found[task] = (*call, *switches)
    except (OSError, ValueError):
        return None  # a thread has ended meanwhile, or there is no such file
    return found


def _read(task: str, name: str) -> str:
    with open(f"{_TASKS}/{task}/{name}", encoding="ascii", errors="replace") as file:
        return file.read()


def _waits_for_a_thread(call: tuple[str, ...]) -> bool:
    """Return whether a line of ``/proc/…/syscall`` shows an endless wait for a private futex."""
    if len(call) < 5 or call[0] != _FUTEX:
        return False
    operation, limit = int(call[2], 16), int(call[4], 16)
    endless = limit == 0 and bool(operation & _PRIVATE)
    return endless and operation & ~(_PRIVATE | _CLOCK) in (_WAIT, _WAIT_BITSET)
