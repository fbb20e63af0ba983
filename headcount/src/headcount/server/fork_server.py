"""The fork server: a process that has imported torch and forks ranks on request.

``multiprocessing``'s own fork server would not do: it runs the caller's main module again in every
child, a process has only one of it, which the student's code may want, and it cannot end what its
children leave behind.  This one forks a whole world per request, and kills and reaps it as a whole.

The server is a clean process: it runs nothing but imports before it forks, no tensor operation and
no thread, and it never runs the student's code.  It serves one client over an inherited socket and
ends with it.

Requests (JSON, one per line):

- ``{"fork": id, "size": n, "seeds": k}`` with 3n file descriptors attached: control, output and
  faults of each rank.  The first k ranks have hash seeds of their own, see :func:`hash_seed`.
  Answered by ``{"forked": id, "pids": [...]}``.
- ``{"signal": id, "number": s, "rank": r}``: send a signal to a rank, or, where ``r`` is null, to
  every rank that still runs.
- ``{"kill": id}``: end every process of the world, and all that they left running.
  Answered by ``{"gone": id}``.

A fork has the hash seed of its server, and nothing but a new interpreter can have another.  So
there is one more server for every other seed, a *sibling* that this one starts when it is first
needed, and that it serves as a client: it hands on requests, and the answers to them.

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
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import psutil

__all__ = ["get_ready", "hash_seed", "main", "run_in_child", "serve", "use_huge_pages"]


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

#: This module, whose name is another where it is run.
_MODULE = "headcount.server.fork_server"

#: File descriptors of a rank, see :class:`headcount.server.process.Handles`.
FDS = 3


@dataclass
class _World:
    """The ranks of a world.

    Attributes:
        size: how many there are.
        pids: this server's own, by process id.
        alive: the process ids of those that have not been reaped.
        elsewhere: the process ids of those that siblings have forked, by rank.
        dying: the ranks whose siblings have yet to end them.
    """

    size: int
    pids: dict[int, int] = field(default_factory=dict)
    alive: set[int] = field(default_factory=set)
    elsewhere: dict[int, int] = field(default_factory=dict)
    dying: set[int] = field(default_factory=set)

    def pids_by_rank(self) -> list[int]:
        """Return all process ids in rank order, as far as they are known."""
        found = {rank: pid for pid, rank in self.pids.items()} | self.elsewhere
        return [found[rank] for rank in sorted(found)]


class _Sibling:
    """A server with another hash seed, which forks the ranks of one number.

    Args:
        rank: the number of these ranks.
        sealed: whether it runs in a sandbox.
        ahead: modules that it imports ahead.
        user: its user id, and so that of its ranks; None for this server's own.
    """

    def __init__(self, rank: int, sealed: bool, ahead: Sequence[str], user: int | None) -> None:
        self.rank = rank
        self.worlds: set[str] = set()
        self.buffer = b""
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", _MODULE, str(theirs.fileno()), *["sealed"] * sealed,
                    *ahead,
                ],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **hash_seed(rank)},
                user=user,
            )  # fmt: skip

    def ask(self, message: dict[str, Any], fds: Iterable[int] = ()) -> None:
        """Hand on a request; a sibling that is gone is noticed by its socket."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self.socket, [json.dumps(message).encode() + b"\n"], list(fds))

    def answers(self) -> list[dict[str, Any]] | None:
        """Return what it has answered since, or None if it is gone."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            return None
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        return [json.loads(line) for line in lines]


class _Server:
    def __init__(
        self,
        client: socket.socket,
        sealed: bool,
        users: Sequence[int] | None,
        ahead: Sequence[str],
    ) -> None:
        self.ahead = ahead
        self.client = client
        self.sealed = sealed
        self.users = users
        self.worlds: dict[str, _World] = {}
        self.buffer = b""
        self.fds: list[int] = []
        self.siblings: dict[int, _Sibling] = {}
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
                self.fork(message["fork"], mine, message["seeds"])
            elif "signal" in message:
                self.signal(message["signal"], message["number"], message["rank"])
            elif "kill" in message:
                self.kill(message["kill"])
        return True

    def fork(self, name: str, fds: list[int], seeds: int) -> None:
        """Fork the ranks of a world, and let siblings fork the first ``seeds`` of them."""
        world = self.worlds[name] = _World(len(fds) // FDS)
        for rank in range(seeds):
            sibling = self.sibling(rank)
            sibling.worlds.add(name)
            asked = {"fork": name, "size": 1, "seeds": 0}
            sibling.ask(asked, fds[FDS * rank : FDS * (rank + 1)])
        # a child's first garbage collection would write to all newer objects
        gc.freeze()
        for rank in range(seeds, world.size):
            pid = os.fork()
            if pid == 0:
                self.become_rank(fds, rank)
            world.pids[pid] = rank
            world.alive.add(pid)
        for fd in fds:
            os.close(fd)
        self.notify_forked(name, world)

    def notify_forked(self, name: str, world: _World) -> None:
        """Tell the client the process ids of a world, once all are known."""
        pids = world.pids_by_rank()
        if len(pids) == world.size:
            self.notify({"forked": name, "pids": pids})

    def sibling(self, rank: int) -> _Sibling:
        """Return the sibling that forks ranks of this number, and start it if there is none."""
        if rank not in self.siblings:
            sibling = self.siblings[rank] = _Sibling(rank, self.sealed, self.ahead, self.user(rank))
            self.selector.register(
                sibling.socket, selectors.EVENT_READ, lambda: self.relay(sibling)
            )
        return self.siblings[rank]

    def user(self, rank: int) -> int | None:
        """Return the user id that ranks of this number take, or None if they keep the server's."""
        return None if self.users is None else self.users[rank]

    def relay(self, sibling: _Sibling) -> None:
        """Hand on what a sibling has answered, or that it is gone."""
        answers, rank = sibling.answers(), sibling.rank
        if answers is None:
            self.selector.unregister(sibling.socket)
            sibling.socket.close()
            del self.siblings[rank]
            # its ranks have ended with it
            answers = [{"exited": name, "status": -signal.SIGKILL} for name in sibling.worlds]
            answers += [{"gone": name} for name in sibling.worlds]
        for answer in answers:
            for word in ("forked", "exited", "gone"):
                world = self.worlds.get(answer.get(word, ""))
                if world is not None:
                    self.relay_answer(sibling, word, answer, world)

    def relay_answer(
        self, sibling: _Sibling, word: str, answer: dict[str, Any], world: _World
    ) -> None:
        name, rank = answer[word], sibling.rank
        if word == "forked":
            (world.elsewhere[rank],) = answer["pids"]
            self.notify_forked(name, world)
        elif word == "exited":
            self.notify({"exited": name, "rank": rank, "status": answer["status"]})
        else:
            sibling.worlds.discard(name)
            world.dying.discard(rank)
            self.notify_gone(name, world)

    def notify_gone(self, name: str, world: _World) -> None:
        """Tell the client that a world is gone, once no sibling has a rank of it."""
        if not world.dying:
            del self.worlds[name]
            self.notify({"gone": name})

    def become_rank(self, fds: list[int], rank: int) -> NoReturn:
        """In the child, keep this rank's descriptors and no others."""
        try:
            from headcount.rank import process_limits
            from headcount.server.process import Handles
            from headcount.server.process import main as rank_main

            process_limits.own_session()
            process_limits.die_with_parent()
            user = self.user(rank)
            if user is not None:
                process_limits.take_user(user)
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
        for sibling in self.siblings.values():
            if name in sibling.worlds and rank in (None, sibling.rank):
                sibling.ask({"signal": name, "number": number, "rank": None})

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
        for sibling in self.siblings.values():
            if name in sibling.worlds:
                world.dying.add(sibling.rank)
                sibling.ask({"kill": name})
        for pid in world.pids:
            # the rank leads its own process group; its children share it
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        for pid in world.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        world.alive.clear()
        if not self.sealed:
            self.kill_strays()
        self.notify_gone(name, world)

    def kill_strays(self) -> None:
        """Kill processes that left their rank's process group.

        The server is their reaper (see :func:`_adopt_orphans`), so they are its children, and
        ranks are the only children that it should have.
        """
        while _has_children():
            mine = {pid for world in self.worlds.values() for pid in world.alive}
            mine |= {sibling.process.pid for sibling in self.siblings.values()}
            strays = [pid for pid in _children() if pid not in mine]
            if not strays:
                return
            for pid in strays:
                # its own children become the server's when it is gone, and are found next
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)

    def end(self) -> None:
        """Kill every world, since the client is gone."""
        for name in list(self.worlds):
            self.kill(name)


def hash_seed(rank: int) -> dict[str, str]:
    """Return the environment variable that gives a rank's interpreter its hash seed.

    Python draws a seed at random unless it is told one; a verdict has to be repeatable.
    """
    return {"PYTHONHASHSEED": str(rank + 1)}


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


def serve(
    client: socket.socket,
    sealed: bool,
    users: Sequence[int] | None = None,
    ahead: Sequence[str] = (),
) -> None:
    """Serve a client until it is gone.

    Args:
        client: the socket to it.
        sealed: whether this process is in a sandbox.
        ahead: modules that siblings import ahead, as this process has.
        users: the user ids that ranks take, by rank; None if they keep this process's.
    """
    client.set_inheritable(False)
    _Server(client, sealed, users, ahead).serve()


def main(fd: int, sealed: bool = False, ahead: Sequence[str] = ()) -> None:
    """Serve the client at the other end of socket ``fd``, in a sandbox if ``sealed``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _adopt_orphans()
    kept = get_ready(ahead)
    if sealed:
        from headcount.rank import process_limits

        process_limits.remember_memory()
        process_limits.prepare_seal()
        process_limits.hide()
    serve(socket.socket(fileno=fd), sealed, ahead=ahead)
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
    descriptor, *words = sys.argv[1:]
    main(int(descriptor), "sealed" in words, [word for word in words if word != "sealed"])
