"""Limits and settings of a rank's process that the operating system enforces.

A sealed rank, which runs the code of a stranger, gives up most system calls as well.  The filter
on them is libseccomp's, bound by ``pyseccomp``, which no other rank needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import resource
import signal
import socket
import sys
import termios
from functools import lru_cache, partial
from typing import Any

__all__ = [
    "die_with_parent",
    "hide",
    "let_others_finish",
    "limit_memory",
    "limit_process",
    "memory_now",
    "own_session",
    "prepare_seal",
    "remember_memory",
    "seal",
]


# The process: its group, its parent, its turn, and who can look into it. ----------


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


def hide() -> None:
    """Keep other processes of the same user from inspecting this one and its children.

    Raises:
        OSError: the kernel refuses.
    """
    pr_set_dumpable = 4
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_dumpable, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_DUMPABLE")


# Memory, threads and files. -------------------------------------------------------

#: Bytes of private writable memory, if :func:`remember_memory` has measured them.
_measured: int | None = None


def remember_memory() -> None:
    """Measure this process's memory now, for children that live without ``/proc``.

    Call it while there is one thread.  It searches for the smallest ``RLIMIT_DATA`` under which
    the kernel still grants one more page.
    """
    global _measured
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
    limit = memory_now() + extra
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def limit_process(threads: int, files: int) -> None:
    """Set limits on this process and its children that they cannot raise again."""
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, threads),
        (resource.RLIMIT_NOFILE, files),
    ):
        resource.setrlimit(kind, (limit, limit))


# The filter on system calls of a sealed rank. -------------------------------------
#
# The ranks of a submission share a user, a network and a view of the files.  Once a rank has joined
# its group, and before any submitted code runs, it gives up all system calls that could reach more
# than its own memory, its open connections and read-only files: new sockets and processes, signals
# to others, shared memory, locks, keys, tracing.  The filter lists what is allowed, so that the
# calls which a future kernel adds are refused.
#
# A refused call fails with ``EPERM``, an exception like any other; it ends nothing.

#: Calls that reach only the process itself and what it has open.
_OWN = {
    "what is open": """
        read readv pread64 preadv preadv2 write writev pwrite64 pwritev lseek close close_range
        fstat fstatfs getdents getdents64 fadvise64 dup dup2 dup3 pipe pipe2 poll ppoll select
        pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
        eventfd2 timerfd_create timerfd_settime timerfd_gettime sendto recvfrom sendmsg recvmsg
        sendmmsg recvmmsg shutdown getsockname getpeername""",
    "files, none of which can be written": """
        open openat newfstatat stat lstat statx statfs access faccessat faccessat2 readlink
        readlinkat getcwd chdir fchdir umask""",
    "memory": "munmap mprotect mremap brk madvise get_mempolicy",
    "threads": """
        set_robust_list rseq arch_prctl
        membarrier sched_yield sched_getaffinity sched_getparam sched_getscheduler
        sched_get_priority_max sched_get_priority_min exit exit_group""",
    "signals to itself": """
        rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigsuspend rt_sigpending
        sigaltstack restart_syscall pause alarm setitimer getitimer""",
    "time": "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times",
    "who and where it is": """
        getpid gettid getppid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp
        getpgid getsid uname getrusage getcpu getrlimit setrlimit getpriority getrandom""",
}

#: Calls that a rank also needs to make a subgroup with connections of its own.
_CONNECTING = ("setsockopt", "getsockopt", "bind", "connect", "listen", "accept", "accept4")

_CLONE_VM, _CLONE_THREAD = 0x100, 0x10000
_FUTEX_PRIVATE = 128
_PR_SET_NAME, _PR_GET_NAME = 15, 16
_AF_INET, _AF_INET6, _AF_NETLINK = 2, 10, 16


def seal(subgroups: bool) -> None:
    """Give up all system calls that a rank does not need, for good and in all threads.

    Args:
        subgroups: whether the rank may still open connections, which ``new_group`` needs.

    Raises:
        OSError: the kernel or libseccomp cannot install the filter.
    """
    filter_ = _filter(subgroups)
    me = os.getpid()
    for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        _allow(filter_, name, _argument(0, me))
    # only its own limits, not those of other processes
    _allow(filter_, "prlimit64", _argument(0, 0))
    _allow(filter_, "prlimit64", _argument(0, me))
    filter_.load()


def prepare_seal() -> None:
    """Load libseccomp and prepare the filters, before ranks are forked.

    Looking for the library starts a process, which a sealed rank cannot do.
    """
    for subgroups in (False, True):
        _filter(subgroups)


@lru_cache(maxsize=2)
def _filter(subgroups: bool) -> Any:
    """Return the filter of the calls that are the same for every rank."""
    scmp = _library()
    filter_ = scmp.SyscallFilter(scmp.ERRNO(errno.EPERM))
    filter_.set_attr(scmp.Attr.CTL_TSYNC, 1)
    allow = partial(_allow, filter_)
    for names in _OWN.values():
        for name in names.split():
            allow(name)
    # threads, not processes; clone3 hides its flags behind a pointer, and the C
    # library asks for clone where the kernel has none
    threads = _CLONE_VM | _CLONE_THREAD
    allow("clone", _argument(0, threads, threads))
    filter_.add_rule(scmp.ERRNO(errno.ENOSYS), "clone3")
    # private memory only: shared memory counts towards no process's limit, not even as a
    # mapping of /dev/zero
    allow("mmap", _argument(3, mmap.MAP_PRIVATE, mmap.MAP_SHARED | mmap.MAP_PRIVATE))
    # a futex in a file that all ranks have mapped would be a signal to all of them;
    # pthread_join waits on a shared futex of its own process, and retries on EAGAIN
    allow("futex", _argument(1, _FUTEX_PRIVATE, _FUTEX_PRIVATE))
    filter_.add_rule(scmp.ERRNO(errno.EAGAIN), "futex", _argument(1, 0, _FUTEX_PRIVATE))
    # no locks: a lock on a file that all ranks can read is a message
    for command in (
        fcntl.F_DUPFD,
        fcntl.F_DUPFD_CLOEXEC,
        fcntl.F_GETFD,
        fcntl.F_SETFD,
        fcntl.F_GETFL,
        fcntl.F_SETFL,
    ):
        allow("fcntl", _argument(1, command))
    for request in (termios.TCGETS, termios.TIOCGWINSZ, termios.FIONREAD, termios.FIONBIO):
        allow("ioctl", _argument(1, request))
    # other options show the state of a connection, and so what the other side does
    allow("getsockopt", _argument(1, socket.SOL_SOCKET))
    for option in (_PR_SET_NAME, _PR_GET_NAME):
        allow("prctl", _argument(0, option))
    if subgroups:
        for family in (_AF_INET, _AF_INET6, _AF_NETLINK):
            allow("socket", _argument(0, family))
        for name in _CONNECTING:
            allow(name)
    return filter_


def _allow(filter_: Any, name: str, *conditions: Any) -> None:
    scmp = _library()
    # some architectures lack some calls
    if scmp.resolve_syscall(scmp.Arch.NATIVE, name) >= 0:
        filter_.add_rule(scmp.ALLOW, name, *conditions)


def _argument(position: int, value: int, mask: int | None = None) -> Any:
    scmp = _library()
    if mask is None:
        return scmp.Arg(position, scmp.EQ, value)
    return scmp.Arg(position, scmp.MASKED_EQ, mask, value)


@lru_cache(maxsize=1)
def _library() -> Any:
    import pyseccomp

    return pyseccomp
