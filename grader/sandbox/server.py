"""A process that has imported torch, and forks sandboxes that share it.

It is started in bubblewrap, sees only what a sandbox may see, and runs no submission's code.  For
every request it forks a fork server (:mod:`headcount.server.fork_server`) into its own namespaces:
processes, network, System V IPC, host name.  That server gives up every right before it forks a
rank, except for the two that it needs to make each rank a user of its own and to end it.  So a
submission's sandbox takes milliseconds, and shares nothing with the next one but read-only files.

Requests are lines of JSON with one descriptor attached, the socket of the new server's client:
``{"user": u}``, where ``u`` is the first of :data:`USERS` user ids, or null to keep the only one
there is.  The fork server takes the first, and each rank the one that its number says.  The process
and all its sandboxes end when its client does.

Run without a socket, it makes one empty sandbox to see whether that works here, as its exit status
says.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from headcount.rank import process_limits
from headcount.server import fork_server

__all__ = ["main", "rehearse"]

#: Limits on the threads of a user: of one that has a whole sandbox, where two worlds of 8 ranks
#: need about 100, and of one that is a rank.
THREADS, RANK_THREADS = 1024, 256

#: User ids of a sandbox that root makes: one for its fork server, and one for each rank.
USERS = 32

#: Limit on the open files of a process in it: every rank has a connection with every other.
FILES = 256

#: What processes in it import ahead: what simulated ranks are made of, what adapters use, and the
#: parser.  What simulates ranks is not there, and is sent to the processes that need it.
AHEAD = ("greenlet", "grader.instruments", "grader.submission.parsing")

#: The user id of the trial, where root runs it.
_NOBODY = 65534

# <linux/sched.h>, <linux/prctl.h>, <linux/capability.h>, <linux/sockios.h>, <linux/if.h>
_NEW_PID, _NEW_NET, _NEW_IPC, _NEW_UTS = 0x20000000, 0x40000000, 0x08000000, 0x04000000
_CAPBSET_READ, _CAPBSET_DROP, _GET_NO_NEW_PRIVS = 23, 24, 39
_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL = 47, 4
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1


def main(fd: int) -> None:
    """Fork a sandbox for every request that comes over socket ``fd``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    client = socket.socket(fileno=fd)
    kept = fork_server.get_ready(AHEAD)
    process_limits.remember_memory()
    process_limits.prepare_seal()
    signal.signal(signal.SIGCHLD, _reap)
    client.sendall(b"ready\n")
    while True:
        data, fds, _, _ = socket.recv_fds(client, 1 << 12, 1)
        if not data:
            break
        if os.fork() == 0:
            client.close()
            user = json.loads(data)["user"]
            _make_sandbox(user, partial(_serve, fds[0], user))
        for passed in fds:
            os.close(passed)
    del kept


def _reap(*_: object) -> None:
    """Reap sandboxes that have ended; their exit statuses are not used."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(fd: int, user: int | None) -> None:
    ranks = None if user is None else range(user + 1, user + USERS)
    fork_server.serve(socket.socket(fileno=fd), sealed=True, users=ranks)


def rehearse() -> int:
    """Make a sandbox that ends at once, and return its exit status."""
    process_limits.prepare_seal()
    made = os.fork()
    if made == 0:
        _make_sandbox(_NOBODY if os.geteuid() == 0 else None, lambda: None)
    return os.waitstatus_to_exitcode(os.waitpid(made, 0)[1])


def _make_sandbox(user: int | None, act: Callable[[], None]) -> NoReturn:
    """In a child, stay outside the new namespaces and wait for the process inside."""
    status = 70
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        process_limits.die_with_parent()
        process_limits.call_libc("unshare", _NEW_PID | _NEW_NET | _NEW_IPC | _NEW_UTS)
        _raise_loopback()
        _give_up_rights(user)
        # the first process of a namespace takes all others with it when it ends
        inside = os.fork()
        if inside == 0:
            _be_inside(user, act)
        process_limits.keep_rights()
        # the socket too: the client would wait as long as it is open here
        os.closerange(3, FILES)
        status = os.waitstatus_to_exitcode(os.waitpid(inside, 0)[1])
    except BaseException as error:
        _complain(error)
    finally:
        os._exit(status & 0xFF)


def _be_inside(user: int | None, act: Callable[[], None]) -> NoReturn:
    try:
        process_limits.die_with_parent()
        process_limits.limit_process(THREADS if user is None else RANK_THREADS, FILES)
        process_limits.hide()
        act()
        os._exit(0)
    except BaseException as error:
        _complain(error)
    finally:
        os._exit(70)


def _complain(error: BaseException) -> None:
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)


def _raise_loopback() -> None:
    """Start the loopback of a new network, which is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def _give_up_rights(user: int | None) -> None:
    """Give up all rights for good, and take another user id.

    Where ranks are users of their own, the rights to make and to end such ranks are kept; the
    process gives them up when it has forked the one that needs them.

    Raises:
        OSError: another right of root's is left.
    """
    process_limits.call_libc("prctl", _CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(64):
        if _prctl(_CAPBSET_READ, capability) == 1:
            process_limits.call_libc("prctl", _CAPBSET_DROP, capability, 0, 0, 0)
    if user is None:
        process_limits.keep_rights()
    else:
        os.setgroups([])
        os.setresgid(user, user, user)
        process_limits.take_user(user, (process_limits.CAP_KILL, process_limits.CAP_SETUID))
    if 0 in os.getresuid() or 0 in os.getresgid():
        raise PermissionError("a sandbox has kept a user id of root's")
    if _prctl(_GET_NO_NEW_PRIVS, 0) != 1:
        raise PermissionError("a sandbox could get rights by running a program")


def _prctl(option: int, argument: int) -> int:
    answer: int = ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)
    return answer


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(int(sys.argv[1]))
    else:
        sys.exit(rehearse())
