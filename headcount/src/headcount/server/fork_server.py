"""The fork server: a process that has imported torch and forks ranks on request.

``multiprocessing``'s own fork server would not do: it runs the caller's main module again in every
child, a process has only one of it, which the student's code may want, and it cannot end what its
children leave behind.  This one forks a whole world per request, and kills and reaps it as a whole.

The server is a clean process: it runs nothing but imports before it forks, no tensor operation and
no thread, and it never runs the student's code.  It serves one client over an inherited socket and
ends with it.

Requests (JSON, one per line):

- ``{"fork": id, "size": n}`` with 3n file descriptors attached: control, output and faults of each
  rank.  Answered by ``{"forked": id, "pids": [...]}``.
- ``{"signal": id, "number": s, "rank": r}``: send a signal to a rank, or, where ``r`` is null, to
  every rank that still runs.
- ``{"kill": id}``: end every process of the world, and all that they left running.
  Answered by ``{"gone": id}``.

In a sandbox (``sealed``) its ranks cannot start processes, so
there are no stray ones, and there is no ``/proc`` in which to find them.

When a rank ends by itself, the server sends ``{"exited": id, "rank": r, "status": s}``, where a
negative status is a signal.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import itertools
import json
import os
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import psutil

__all__ = ["get_ready", "main", "run_in_child", "serve", "use_huge_pages"]


# Memory in large pages, so that a process with torch in it forks in half the time. ----
#
# A fork copies the table of pages, and the end of a child tears it down; torch and its Python
# objects are nearly 40,000 small pages, or 75 large ones.  Linux 6.1 and later can collapse small
# pages into large ones on request (``MADV_COLLAPSE``, see ``madvise(2)``); memory that a child
# writes to is still copied in small pages.

#: Bits of an address within a large page, on x86-64, and on arm64 with small pages of 4 kB.
_BITS = 21

_MADV_COLLAPSE = 25

#: Bytes below the end of the C library's heap that are searched for its pages.
_LARGEST_HEAP = 4 << 30


def use_huge_pages() -> None:
    """Move this process's heap and Python objects to large pages, where the kernel can.

    It has to be called before ``gc.freeze``, which hides the objects.  Pages that cannot be moved
    are left as they are, which only costs time.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    pages = {id(one) >> _BITS for one in gc.get_objects()} | set(_heap(libc))
    for first, count in adjacent(sorted(pages)):
        start, length = ctypes.c_void_p(first << _BITS), ctypes.c_size_t(count << _BITS)
        libc.madvise(start, length, _MADV_COLLAPSE)


def adjacent(pages: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield runs of adjacent pages, since every request makes all processors synchronize."""
    for _, run in itertools.groupby(enumerate(pages), lambda pair: pair[1] - pair[0]):
        members = list(run)
        yield members[0][1], len(members)


def _heap(libc: ctypes.CDLL) -> Iterator[int]:
    """Yield the large pages below the end of the heap that are in use, without ``/proc``."""
    size = 1 << _BITS
    resident = ctypes.create_string_buffer(size >> 12)
    libc.sbrk.restype = ctypes.c_void_p
    top = (libc.sbrk(0) or 0) >> _BITS
    for page in range(top - 1, max(top - (_LARGEST_HEAP >> _BITS), 0), -1):
        if libc.mincore(ctypes.c_void_p(page << _BITS), ctypes.c_size_t(size), resident) != 0:
            return
        yield page


# The fork server. -----------------------------------------------------------------

#: File descriptors of a rank, see :class:`headcount.server.process.Handles`.
FDS = 3


@dataclass
class _World:
    """The ranks of a world.

    Attributes:
        pids: the ranks, by process id.
        alive: the process ids of those that have not been reaped.
    """

    pids: dict[int, int] = field(default_factory=dict)
    alive: set[int] = field(default_factory=set)


class _Server:
    def __init__(self, client: socket.socket, sealed: bool, users: Sequence[int] | None) -> None:
        self.client = client
        self.sealed = sealed
        self.users = users
        self.worlds: dict[str, _World] = {}
        self.buffer = b""
        self.fds: list[int] = []
        self.selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Answer requests until the client is gone."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(reader, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with self.selector as selector:
            selector.register(self.client, selectors.EVENT_READ, self.request)
            selector.register(reader, selectors.EVENT_READ, lambda: self.reap(reader))
            self.notify({"ready": os.getpid(), **_dangers()})
            while True:
                for key, _ in selector.select():
                    if key.data() is False:
                        return

    def notify(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.client.sendall(json.dumps(message).encode() + b"\n")

    def request(self) -> bool:
        """Read from the client; return False when it is gone."""
        data, fds, _, _ = socket.recv_fds(self.client, 1 << 16, 253)
        if not data:
            self.end()
            return False
        self.buffer += data
        self.fds += fds
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "fork" in message:
                count = FDS * message["size"]
                mine, self.fds = self.fds[:count], self.fds[count:]
                self.fork(message["fork"], mine)
            elif "signal" in message:
                self.signal(message["signal"], message["number"], message["rank"])
            elif "kill" in message:
                self.kill(message["kill"])
        return True

    def fork(self, name: str, fds: list[int]) -> None:
        """Fork the ranks of a world."""
        world = self.worlds[name] = _World()
        # a child's first garbage collection would write to all newer objects
        gc.freeze()
        for rank in range(len(fds) // FDS):
            pid = os.fork()
            if pid == 0:
                self.become_rank(fds, rank)
            world.pids[pid] = rank
            world.alive.add(pid)
        for fd in fds:
            os.close(fd)
        self.notify({"forked": name, "pids": list(world.pids)})

    def become_rank(self, fds: list[int], rank: int) -> NoReturn:
        """In the child, keep this rank's descriptors and no others."""
        try:
            from headcount.rank import process_limits
            from headcount.server.process import Handles
            from headcount.server.process import main as rank_main

            process_limits.own_group()
            process_limits.die_with_parent()
            if self.users is not None:
                process_limits.take_user(self.users[rank])
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            mine = fds[FDS * rank : FDS * (rank + 1)]
            keep = {0, 1, 2, *mine}
            for fd in _open_descriptors():
                if fd not in keep:
                    with contextlib.suppress(OSError):
                        os.close(fd)
            rank_main(Handles(*mine))
        finally:
            os._exit(70)

    def signal(self, name: str, number: int, rank: int | None) -> None:
        """Signal the ranks of a world that have not been reaped, or one of them."""
        world = self.worlds.get(name)
        for pid in world.alive if world is not None else ():
            if world is not None and rank in (None, world.pids[pid]):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def reap(self, reader: int) -> None:
        """Reap the children that have ended, and report them."""
        with contextlib.suppress(BlockingIOError):
            while os.read(reader, 4096):
                pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.note_exit(pid, os.waitstatus_to_exitcode(status))

    def note_exit(self, pid: int, status: int) -> None:
        for name, world in self.worlds.items():
            if pid in world.alive:
                world.alive.discard(pid)
                self.notify({"exited": name, "rank": world.pids[pid], "status": status})

    def kill(self, name: str) -> None:
        """Kill and reap every process of a world, and all that they left running."""
        world = self.worlds.get(name)
        if world is None:
            self.notify({"gone": name})
            return
        for pid in world.pids:
            # the rank leads its own process group; its children share it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        for pid in world.alive:
            _end(pid)
        world.alive.clear()
        if not self.sealed:
            self.kill_strays()
        del self.worlds[name]
        self.notify({"gone": name})

    def kill_strays(self) -> None:
        """Kill processes that left their rank's process group.

        The server is their reaper (see :func:`_adopt_orphans`), so they are its children, and
        ranks are the only children that it should have.
        """
        while _has_children():
            mine = {pid for world in self.worlds.values() for pid in world.alive}
            strays = [pid for pid in _children() if pid not in mine]
            if not strays:
                return
            for pid in strays:
                # its own children become the server's when it is gone, and are found next
                _end(pid)

    def end(self) -> None:
        """Kill every world, since the client is gone."""
        for name in list(self.worlds):
            self.kill(name)


def _end(pid: int) -> None:
    """Kill and reap a process, which may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _has_children() -> bool:
    """Return whether this process has any child, which is far cheaper than a list of them."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children() -> list[int]:
    """Return the process ids of this process's children."""
    return [process.pid for process in psutil.Process().children()]


def _open_descriptors() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        if os.path.isdir(folder):
            return [int(name) for name in os.listdir(folder) if name.isdigit()]
    return list(range(3, 256))


def _adopt_orphans() -> None:
    """On Linux, let processes whose rank has died become children of the server."""
    if sys.platform == "linux":
        import ctypes

        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def _dangers() -> dict[str, Any]:
    """Return what makes forking unsafe; both values are false in a clean process."""
    import torch

    return {"threads": threading.active_count() > 1, "cuda": torch.cuda.is_initialized()}  # type: ignore[no-untyped-call]


def get_ready(ahead: Iterable[str]) -> object:
    """Import all that a rank uses, so that children share it; the result has to be kept.

    Args:
        ahead: modules that are imported besides.
    """
    gc.disable()  # modules are no garbage; looking for some takes a tenth of the imports' time
    from headcount.server.process import prepare  # with it torch

    for module in ahead:
        importlib.import_module(module)
    closed = prepare()
    use_huge_pages()
    # objects made so far are never collected, so that the collector does not write to their
    # pages, and children go on sharing them
    gc.collect()
    gc.freeze()
    return closed


def serve(client: socket.socket, sealed: bool, users: Sequence[int] | None = None) -> None:
    """Serve a client until it is gone.

    Args:
        client: the socket to it.
        sealed: whether this process is in a sandbox.
        users: the user ids that ranks take, by rank; None if they keep this process's.
    """
    client.set_inheritable(False)
    _Server(client, sealed, users).serve()


def main(fd: int, ahead: Sequence[str] = ()) -> None:
    """Serve the client at the other end of socket ``fd``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopt_orphans()
    kept = get_ready(ahead)
    serve(socket.socket(fileno=fd), sealed=False)
    del kept


def run_in_child(
    fd: int, errors: int, variables: Mapping[str, str], ahead: Sequence[str]
) -> NoReturn:
    """Turn this process, just forked, into a server, and end it when the client is gone.

    Args:
        fd: the socket to serve.
        errors: the descriptor of the file that becomes its standard error.
        variables: the environment of a server.
        ahead: modules that are imported ahead.
    """
    try:
        os.setsid()  # Ctrl-C in a terminal goes to the whole group
        null = os.open(os.devnull, os.O_RDWR)
        for standard, replacement in enumerate((null, null, errors)):
            os.dup2(replacement, standard)
        for other in _open_descriptors():
            if other > 2 and other != fd:
                with contextlib.suppress(OSError):
                    os.close(other)
        os.environ.clear()
        os.environ.update(variables)
        sys.argv = [__file__, str(fd)]
        main(fd, ahead=ahead)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
