"""What the kernel says of a process: where it sleeps, whom it waits for, and who may read it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from headcount.script.attach.readings import FileLock

__all__ = ["file_lock", "network_of", "sleeps_in", "why_denied"]


def sleeps_in(pid: int) -> str:
    """Return the function of the kernel that a process's main thread sleeps in, if it is told."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/wchan").read_text(errors="replace").strip("0\n")
    return ""


def network_of(pid: int) -> str | None:
    """Return what tells one namespace of networks from another; None if it may not be read."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/net")
    return None


def file_lock(process: psutil.Process) -> FileLock | None:
    """Return the lock of a file that a process waits for; the kernel lists both sides of it."""
    with contextlib.suppress(OSError, psutil.Error, IndexError, ValueError):
        rows = [row.split() for row in Path("/proc/locks").read_text().splitlines()]
        for number, arrow, *rest in rows:
            if arrow == "->" and rest[3] == str(process.pid):
                holder = next(row for row in rows if row[0] == number and row[1] != "->")
                inode = int(holder[5].rpartition(":")[2])
                paths = [one.path for one in process.open_files()]
                named = [one for one in paths if os.stat(one).st_ino == inode]
                return FileLock(named[0] if named else f"inode {inode}", int(holder[4]))
    return None


def why_denied(process: psutil.Process) -> str:
    """Return why the memory of a process may not be read, and what would let it be."""
    with contextlib.suppress(psutil.Error):
        if os.geteuid() not in (0, process.uids().effective):
            return f"it is {process.username()}'s: attach as that user, or by sudo"
    scope = ""
    with contextlib.suppress(OSError):
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip()
    if scope not in ("", "0"):
        return f"kernel.yama.ptrace_scope is {scope}: attach by sudo, or set it to 0"
    if _may_trace():
        return "the system refuses it: it is outside this container, or guarded by the system"
    sudo = "attach by sudo; " * (os.geteuid() != 0)
    return f"the system refuses it: {sudo}a container needs the capability SYS_PTRACE"


def _may_trace() -> bool:
    """Return whether this process has the capability SYS_PTRACE, the 19th."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text()
        return bool(int(status.partition("CapEff:")[2].split()[0], 16) >> 19 & 1)
    return False
