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
import struct
import sys
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

__all__ = [
    "CAP_KILL",
    "CAP_SETUID",
    "call_libc",
    "die_with_parent",
    "hide",
    "keep_rights",
    "let_others_finish",
    "limit_memory",
    "limit_process",
    "memory_now",
    "own_group",
    "prepare_seal",
    "remember_memory",
    "seal",
    "take_user",
]


# The process: its group, its parent, its turn, and who can look into it. ----------


def own_group() -> None:
    """Make a process group of this process, so that the whole rank can be killed as one.

    It stays in the server's session, which has no terminal.  Linux gives each session a share of
    the processors (autogroup, see ``sched(7)``), and ranks in sessions of their own preempt each
    other whatever :func:`let_others_finish` says.
    """
    os.setpgid(0, 0)


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
    call_libc("prctl", pr_set_dumpable, 0, 0, 0, 0)


# Users and rights. ----------------------------------------------------------------
#
# Much of what the kernel counts, it counts by user: threads, pending signals, buffers of pipes,
# watched descriptors.  A process that can reach a limit on such a count learns what others of the
# same user have.  So each rank of a sandbox that root has made is a user of its own.

#: ``<linux/capability.h>``: the rights that a process needs to fork such ranks and to end them.
CAP_KILL, CAP_SETUID = 5, 7

_CAPABILITY_VERSION_3 = 0x20080522


def take_user(user: int, kept: Sequence[int] = ()) -> None:
    """Take another user id for good, and keep the rights in ``kept`` and no others.

    Raises:
        OSError: the process may not take the user id, or has kept a right.
    """
    pr_set_keepcaps = 8
    call_libc("prctl", pr_set_keepcaps, int(bool(kept)), 0, 0, 0)
    os.setresuid(user, user, user)
    keep_rights(kept)
    # the kernel drops these settings when the user changes
    die_with_parent()
    hide()


def keep_rights(kept: Sequence[int] = ()) -> None:
    """Give up all rights but those in ``kept``.

    Raises:
        OSError: another right is left.
    """
    rights = sum(1 << right for right in kept)
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    # effective, permitted, inheritable; the upper halves of all three come second
    wanted = struct.pack("=6I", rights, rights, 0, 0, 0, 0)
    call_libc("capset", header, ctypes.create_string_buffer(wanted, len(wanted)))
    left = ctypes.create_string_buffer(len(wanted))
    call_libc("capget", header, left)
    if left.raw != wanted:
        raise PermissionError("a process of a sandbox has kept rights of root's")


def call_libc(name: str, *arguments: object) -> None:
    """Call a function of the C library.

    Raises:
        OSError: the call has failed.
    """
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


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
    """Set limits of Linux on this process and its children that they cannot raise again."""
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, threads),
        (resource.RLIMIT_NOFILE, files),
        # counts of a user that processes share; with room for none there is nothing to count
        (resource.RLIMIT_SIGPENDING, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(kind, (limit, limit))


# The filter on system calls of a sealed rank. -------------------------------------
#
# The ranks of a submission share a network, a view of the files, and whatever the kernel counts for
# all.  Once a rank has joined its group, and before any submitted code runs, it gives up all system
# calls that it does not need.  The filter lists what is allowed, so that the calls which a future
# kernel adds are refused.  ``python -m tools.syscalls`` traces runs and says which rules they need.
#
# A refused call fails with ``EPERM``, an exception like any other; it ends nothing.  That holds for
# the calls of other architectures that the same kernel runs, too (i386, x32).


@dataclass(frozen=True)
class Rule:
    """System calls that a sealed rank may make.

    Attributes:
        calls: their names, between blanks.
        reason: what makes them, and why they tell nothing about other ranks, where that is not
            plain.
        when: conditions on their arguments, any of which may hold; empty if anything is allowed.
        subgroups: whether only ranks that may make subgroups need them.
        error: the error that is returned instead of an answer; 0 if the call is allowed.
    """

    calls: str
    reason: str
    when: tuple[tuple[Condition, ...], ...] = ()
    subgroups: bool = False
    error: int = 0


@dataclass(frozen=True)
class Condition:
    """A condition on an argument of a system call.

    Attributes:
        position: which argument, from 0 on.
        value: what it must be; None for this process's id.
        mask: the bits of it that count.
    """

    position: int
    value: int | None
    mask: int = 0xFFFF_FFFF_FFFF_FFFF


def _one_of(position: int, *values: int) -> tuple[tuple[Condition, ...], ...]:
    return tuple((Condition(position, value),) for value in values)


# <linux/sched.h>, <linux/futex.h>, <linux/prctl.h>, <asm/prctl.h>, <asm-generic/mman-common.h>
_CLONE_VM, _CLONE_THREAD = 0x100, 0x10000
_FUTEX_PRIVATE = 128
_PR_SET_NAME, _PR_GET_NAME = 15, 16
_ARCH_GET_XCOMP_SUPP, _ARCH_GET_XCOMP_PERM, _ARCH_REQ_XCOMP_PERM = 0x1021, 0x1022, 0x1023
_MADV_NORMAL, _MADV_DONTNEED, _MADV_FREE, _MADV_HUGEPAGE, _MADV_NOHUGEPAGE = 0, 4, 8, 14, 15
_MAP_SHARED, _MAP_PRIVATE, _MAP_LOCKED, _MAP_HUGETLB = 1, 2, 0x2000, 0x40000
_MAPPED = _MAP_SHARED | _MAP_PRIVATE | _MAP_LOCKED | _MAP_HUGETLB
_AF_INET, _SOCK_STREAM, _SOCK_FLAGS = 2, 1, 0x80800
_SOL_SOCKET, _SO_REUSEADDR, _SO_ERROR, _SO_RCVTIMEO, _SO_SNDTIMEO = 1, 2, 4, 20, 21
_SOL_TCP, _TCP_NODELAY = 6, 1

#: The bits of a clock's number that say whose it is; a number without them is one of the machine's
#: or of the caller's own.
_WHOSE_CLOCK = 0xFFFF_FFF0

RULES = (
    # What is open: connections of gloo and the judge, pipes to the judge, files.
    Rule("sendto recvfrom writev epoll_wait", "gloo's messages, and frames to and from the judge"),
    Rule("epoll_ctl", "gloo waits until a connection takes more of a long message, or ends it"),
    Rule("read close lseek", "files, and gloo's own wake-ups"),
    Rule("write", "output, and dumps of the fault handler"),
    Rule("getsockname", "a socket that is opened by its descriptor: its own address"),
    Rule(
        "getsockopt",
        "gloo asks why a connection has failed; Python asks what kind of socket it was given."
        " Other options show the state of a connection, and so what the other side does",
        tuple(
            (Condition(1, _SOL_SOCKET), Condition(2, option))
            for option in (_SO_ERROR, socket.SO_TYPE, socket.SO_PROTOCOL, socket.SO_DOMAIN)
        ),
    ),
    Rule("pread64 readv dup dup2 dup3", "programs that read at a place, or move their output"),
    Rule("poll ppoll select pselect6", "Python waits for its own sockets, or sleeps (Python 3.10)"),
    Rule(
        "fcntl",
        "programs that copy descriptors. No locks or leases: one on a common file is a message",
        _one_of(
            1, fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL
        ),
    ),
    Rule(
        "ioctl",
        "Python asks whether a file that it opens is a terminal, and programs how wide that is",
        _one_of(1, termios.TCGETS, termios.TIOCGWINSZ),
    ),
    # Files.  None can be written, and no rank changes what another sees of them.  What has been
    # read before is read faster, and nothing here says so in another way.
    Rule("openat newfstatat fstat getdents64", "imports and reading"),
    Rule("readlink readlinkat access faccessat faccessat2 getcwd", "pathlib, os.path, the loader"),
    Rule("statx", "programs in Rust, which call it for every file they open"),
    # Memory.
    Rule("munmap mprotect brk mremap", "malloc"),
    Rule(
        "mmap",
        "malloc, thread stacks, the loader. Private memory only: shared memory counts towards no"
        " process's limit, not even as a mapping of /dev/zero; locked and huge pages come from a"
        " stock that all share",
        ((Condition(3, _MAP_PRIVATE, _MAPPED),),),
    ),
    Rule(
        "madvise",
        "malloc and stacks of threads that end; numpy asks for huge pages. No advice that fetches"
        " or evicts pages of files",
        _one_of(2, _MADV_NORMAL, _MADV_DONTNEED, _MADV_FREE, _MADV_HUGEPAGE, _MADV_NOHUGEPAGE),
    ),
    Rule(
        "arch_prctl",
        "oneDNN asks for the registers of AMX",
        _one_of(0, _ARCH_GET_XCOMP_SUPP, _ARCH_GET_XCOMP_PERM, _ARCH_REQ_XCOMP_PERM),
    ),
    # Threads.  clone3 hides its flags behind a pointer; the C library asks for clone where the
    # kernel has none.
    Rule(
        "clone",
        "threads; no processes",
        ((Condition(0, _CLONE_VM | _CLONE_THREAD, _CLONE_VM | _CLONE_THREAD),),),
    ),
    Rule("clone3", "threads, which then use clone", error=errno.ENOSYS),
    Rule("set_robust_list rseq gettid exit exit_group", "threads begin and end"),
    Rule(
        "futex",
        "locks. Private ones only: a futex in a file that all ranks have mapped would be a signal"
        " to all of them",
        ((Condition(1, _FUTEX_PRIVATE, _FUTEX_PRIVATE),),),
    ),
    Rule(
        "futex",
        "pthread_join, which waits on a shared futex of its own process and asks again",
        ((Condition(1, 0, _FUTEX_PRIVATE),),),
        error=errno.EAGAIN,
    ),
    Rule("sched_yield", "gloo waits for a lock"),
    Rule(
        "sched_getaffinity",
        "how many processors there are; of other threads it would say whether they exist",
        _one_of(0, 0),
    ),
    Rule("prctl", "names of threads", _one_of(0, _PR_SET_NAME, _PR_GET_NAME)),
    # Signals to itself.  None waits in the kernel's queue, whose length is counted by user: see
    # limit_process.
    Rule("rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall", "handlers"),
    Rule("kill tgkill", "abort, raise, os.kill: itself only", ((Condition(0, None),),)),
    Rule("getitimer setitimer alarm pause", "programs that limit their own time by SIGALRM"),
    # Time.  Most clocks are read without a system call, but not on every machine.
    Rule(
        "clock_gettime clock_getres",
        "clocks of the machine and its own; those of other processes say how much they computed",
        ((Condition(0, 0, _WHOSE_CLOCK),),),
    ),
    Rule("clock_nanosleep", "sleep, by the same clocks", ((Condition(0, 0, _WHOSE_CLOCK),),)),
    Rule("nanosleep", "sleep in older C libraries"),
    Rule("gettimeofday time times", "programs that measure time"),
    # What it is.
    Rule("getpid", "torch, at every operation"),
    Rule("getppid getuid geteuid getgid getegid uname", "os, getpass, platform"),
    Rule("getrandom", "random numbers from the kernel, seeds, uuid"),
    Rule(
        "prlimit64",
        "reading its own limits. It cannot set any: a limit that is moved step by step to where it"
        " is reached tells a count that ranks of one user share",
        tuple((Condition(0, whose), Condition(2, 0)) for whose in (0, None)),
    ),
    # Connections of a subgroup.  No filter can check where they go, since an address lies behind a
    # pointer.  But there is no bind and no listen: a rank listens where it did before it was
    # sealed, and nothing else listens in the network of a sandbox.
    Rule(
        "socket",
        "a connection of gloo: TCP, whose bytes the kernel counts",
        (
            (
                Condition(0, _AF_INET),
                Condition(1, _SOCK_STREAM, 0xFFFF_FFFF & ~_SOCK_FLAGS),
                Condition(2, 0),
            ),
        ),
        subgroups=True,
    ),
    Rule("connect accept getpeername", "connections of gloo", subgroups=True),
    Rule(
        "setsockopt",
        "connections of gloo",
        tuple(
            (Condition(1, level), Condition(2, option))
            for level, option in (
                (_SOL_TCP, _TCP_NODELAY),
                (_SOL_SOCKET, _SO_REUSEADDR),
                (_SOL_SOCKET, _SO_RCVTIMEO),
                (_SOL_SOCKET, _SO_SNDTIMEO),
            )
        ),
        subgroups=True,
    ),
    Rule("fcntl", "gloo makes connections wait", _one_of(1, fcntl.F_SETFL), subgroups=True),
)


def seal(subgroups: bool) -> None:
    """Give up all system calls that a rank does not need, for good and in all threads.

    Args:
        subgroups: whether the rank may still open connections, which ``new_group`` needs.

    Raises:
        OSError: the kernel or libseccomp cannot install the filter.
    """
    filter_ = _filter(subgroups)
    _add(filter_, subgroups, os.getpid())
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
    # by default the thread would end that makes a call of another architecture
    filter_.set_attr(scmp.Attr.ACT_BADARCH, scmp.ERRNO(errno.EPERM))
    _add(filter_, subgroups, None)
    return filter_


def _add(filter_: Any, subgroups: bool, me: int | None) -> None:
    """Add those rules that name the process ``me``, or, if it is None, those that name none."""
    scmp = _library()
    for rule in RULES:
        if rule.subgroups and not subgroups:
            continue
        action = scmp.ERRNO(rule.error) if rule.error else scmp.ALLOW
        for conditions in rule.when or ((),):
            if any(one.value is None for one in conditions) != (me is not None):
                continue
            arguments = [
                scmp.Arg(
                    one.position, scmp.MASKED_EQ, one.mask, me if one.value is None else one.value
                )
                for one in conditions
            ]
            for name in rule.calls.split():
                # some architectures lack some calls
                if scmp.resolve_syscall(scmp.Arch.NATIVE, name) >= 0:
                    filter_.add_rule(action, name, *arguments)


@lru_cache(maxsize=1)
def _library() -> Any:
    import pyseccomp

    return pyseccomp
