"""The command under which sandboxes are made: bubblewrap, and what can be seen inside.

Inside there is Python with its packages, read-only, and those modules of the
grader that a rank runs: no oracle, no solution, no test, nobody's files, no
home, no environment, no ``/proc``, nothing that can be written, and no network
but a loopback of its own.  What the ranks in it may ask the kernel for is in
:mod:`grader.rank.seccomp`; ``docs/security.md`` says what is promised.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from grader.core.errors import RequestError, WorldError
from grader.core.source_locations import SANDBOX
from grader.launch.cpp_build import SCRATCH, CppBuilder
from grader.launch.kernel_counters import Counts, read_counts
from grader.launch.launchers import (
    HELPER_START,
    KILL_PATIENCE,
    Client,
    Helper,
    ProcessGroupHandle,
    RankEnvironment,
    readable,
)

__all__ = [
    "BUILT",
    "ROOMS",
    "Sandbox",
    "SandboxPool",
    "compiling_command",
    "missing",
    "new_sandbox",
    "sandbox_command",
]

#: Where ranks see the libraries that were compiled from their answers.
BUILT = "/built"

#: Bytes of memory for the files of a compiler.
_SCRATCH = 256 << 20

#: The rooms of the grader that are there: what a rank, a simulation and the parser import.
ROOMS = ("core", "submission", "trace", "rank", "simulation", "server")

#: What a program needs of a Unix system besides Python.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_MACHINE = ("/proc/cpuinfo", "/sys/devices/system/cpu")

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "PYTHONPATH": SANDBOX,
    "PYTHONSAFEPATH": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "OMP_NUM_THREADS": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}

_PACKAGE = Path(__file__).resolve().parent.parent


def missing() -> str:
    """Why there can be no sandbox here, and the mend; empty if there can."""
    if sys.platform != "linux":
        return "bubblewrap needs Linux; on other systems, grade in a Linux virtual machine"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed; on Debian and Ubuntu: apt install bubblewrap"
    try:
        import pyseccomp  # noqa: F401
    except ImportError:
        return "pyseccomp is not installed: pip install 'gather-round[class]'"
    except RuntimeError:
        return "libseccomp is not installed; on Debian and Ubuntu: apt install libseccomp2"
    return ""


def sandbox_command(hidden: Sequence[Path] = (), built: Path | None = None) -> list[str]:
    """The command under which :mod:`grader.server.sandbox_server` runs.

    Args:
        hidden: folders that must not be seen even if they lie within Python's.
        built: a folder that is seen, read-only, as :data:`BUILT`.

    Raises:
        RequestError: there can be no sandbox here; the message says the mend.
    """
    shown = [] if built is None else ["--ro-bind", str(built), BUILT]
    # what it takes to fork a sandbox into namespaces of its own, and to give all this up there
    rights = ("SYS_ADMIN", "NET_ADMIN", "SETUID", "SETGID", "SETPCAP")
    return _walls(_files(hidden, shown), rights)


def compiling_command(hidden: Sequence[Path] = ()) -> list[str]:
    """The command under which a stranger's source is compiled.

    What ranks can see is seen, and :data:`SCRATCH` is a folder in memory.  Root has to become
    somebody else inside.
    """
    memory = ["--perms", "1777", "--size", str(_SCRATCH), "--tmpfs", SCRATCH]
    return _walls(_files(hidden, memory), ("SETUID", "SETGID"))


def _walls(files: Sequence[str], rights: Sequence[str]) -> list[str]:
    reason = missing()
    if reason:
        raise RequestError(reason)
    command = ["bwrap", "--die-with-parent", "--new-session", "--chdir", "/", "--clearenv"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "sandbox"]
    for name, value in _ENVIRONMENT.items():
        command += ["--setenv", name, value]
    command += files
    # root keeps the user namespace, since mounts must reach every Python
    if os.geteuid() != 0:
        command += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    command += ["--cap-drop", "ALL"]
    for right in rights:
        command += ["--cap-add", f"CAP_{right}"]
    return [*command, "--"]


def _files(hidden: Sequence[Path], more: Sequence[str]) -> list[str]:
    """What can be seen, all of it read-only but for what ``more`` says."""
    options = []
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            options += ["--symlink", os.readlink(path), name]
        elif path.is_dir():
            options += ["--ro-bind", name, name]
    options += _open_folders("/etc", "/proc", "/sys", "/sys/devices", "/sys/devices/system")
    for name in (*_SETTINGS, *_MACHINE):
        options += ["--ro-bind-try", name, name]
    shown = list(_python())
    for folder in shown:
        options += _open_folders(*map(str, reversed(folder.parents[:-1])))
        options += ["--ro-bind", str(folder), str(folder)]
    # a checkout may lie within one of these, and so may an installed grader
    for folder in (_PACKAGE, _PACKAGE.parent, *(Path(one).resolve() for one in hidden)):
        within = [top for top in (*map(Path, _SYSTEM), *shown) if folder.is_relative_to(top)]
        if within and folder not in shown:
            options += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    options += _open_folders("/dev", SANDBOX, f"{SANDBOX}/grader")
    for name in ("__init__.py", *ROOMS):
        options += ["--ro-bind", str(_PACKAGE / name), f"{SANDBOX}/grader/{name}"]
    for name in _DEVICES:
        options += ["--dev-bind", name, name]
    return [*options, *more, "--remount-ro", "/"]


def _open_folders(*names: str) -> list[str]:
    """Folders that lead somewhere; left to itself, bubblewrap lets only its own user pass."""
    return [word for name in names for word in ("--perms", "0755", "--dir", name)]


def _python() -> Iterator[Path]:
    """The folders of this Python, outer ones first and none twice."""
    folders = {Path(folder) for folder in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    # a link on the way to the interpreter must lead somewhere inside, too
    link = Path(sys.executable)
    while link.is_symlink():
        link = Path(os.path.normpath(link.parent / os.readlink(link)))
        folders.add(link.parent.parent)
    for entry in map(Path, sys.path):
        if entry.name in ("site-packages", "dist-packages") and entry.is_dir():
            folders.add(entry)
    kept: list[Path] = []
    for folder in sorted(folders, key=lambda one: len(one.parts)):
        if folder == Path("/") or any(folder.is_relative_to(top) for top in kept):
            continue
        if not any(folder.is_relative_to(top) for top in _SYSTEM):
            kept.append(folder)
    return iter(kept)


# Sandboxes, forked from one process that has imported torch. ----------------------

#: Users of nobody in particular; systemd's range for services of a moment.
_USERS = range(61184, 65520)

_CREDENTIALS = struct.Struct("=iII")


class SandboxPool:
    """Makes sandboxes; it runs nobody's code itself.

    Args:
        hidden: folders that must not be seen inside even if they lie within
            Python's.

    Raises:
        RequestError: there can be no sandbox here; the message says the mend.
    """

    @staticmethod
    def rehearse() -> None:
        """Make an empty sandbox, in a fraction of a second, to see whether it can be done.

        Raises:
            RequestError: there can be no sandbox here; the message says why.
        """
        command = [*sandbox_command(), sys.executable, "-m", "grader.server.sandbox_server"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise RequestError(f"the sandbox does not start here: {why[0]}")

    def __init__(self, hidden: Sequence[Path] = ()) -> None:
        self.hidden = tuple(hidden)
        self._built = tempfile.TemporaryDirectory(prefix="grader-")
        self.built = Path(self._built.name)
        # inside, other users read what they are told the name of; nobody sees whose there are
        self.built.chmod(0o711)
        command = sandbox_command(hidden, self.built)
        self._socket, theirs = socket.socketpair()
        self._helper = Helper("grader.server.sandbox_server", theirs, command)
        # limits on processes are a user's, and no stranger's must be another's; those that
        # grade on this machine now have different process ids
        self._user = _USERS[self.pid % len(_USERS)] if os.geteuid() == 0 else None
        self._ready = False
        atexit.register(self.close)

    @property
    def usable(self) -> bool:
        """Whether it runs, and belongs to this process and not to its parent."""
        return self._helper.usable

    @property
    def pid(self) -> int:
        """Of the command that it runs under."""
        return self._helper.pid

    def last_words(self) -> str:
        """What it, or the last sandbox that failed, complained of."""
        return self._helper.last_words() or "it says nothing"

    def sandbox(self) -> Sandbox:
        """A new one; one at a time, or they share a user and its limits.

        Raises:
            WorldError: it cannot be had.
        """
        self._wait()
        return Sandbox(self, self._user)

    def _wait(self) -> None:
        if self._ready:
            return
        self._socket.settimeout(HELPER_START)
        try:
            self._ready = bool(self._socket.recv(16))
        except TimeoutError:
            raise WorldError(f"sandboxes took over {HELPER_START:.0f} s to start") from None
        if not self._ready:
            raise WorldError(f"no sandbox can be started: {self.last_words()}")

    def ask(self, user: int | None, passed: int) -> None:
        """Have a sandbox forked.

        Args:
            user: to become, inside; ``None`` if there is only one to be.
            passed: the descriptor on which it is to be spoken with.

        Raises:
            WorldError: nobody is there to do it.
        """
        try:
            socket.send_fds(self._socket, [json.dumps({"user": user}).encode()], [passed])
        except OSError as error:
            raise WorldError(f"no sandbox can be started: {error}; {self.last_words()}") from error

    def close(self) -> None:
        """End it, and with it all its sandboxes."""
        if not self._helper.ours:
            return
        atexit.unregister(self.close)
        self._socket.close()
        self._helper.end()
        self._built.cleanup()


class Sandbox(Client):
    """A fork server in a sandbox of its own; made by :meth:`SandboxPool.sandbox`."""

    def __init__(self, pool: SandboxPool, user: int | None) -> None:
        super().__init__(RankEnvironment(path=[], folder="/", sealed=True))
        self._pool = pool
        self._user = user
        # the kernel says who writes, as this process would name it
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            with self._theirs as theirs:
                pool.ask(user, theirs.fileno())
            self.pid = self._introduction()
            self._pidfds = self._watched()
        except WorldError:
            self._socket.close()
            raise

    def _introduction(self) -> int:
        """Hear the first words, and who says them."""
        self._socket.settimeout(HELPER_START)
        try:
            data, attached, _, _ = self._socket.recvmsg(1 << 16, socket.CMSG_SPACE(64))
        except TimeoutError:
            raise WorldError(f"a sandbox took over {HELPER_START:.0f} s to start") from None
        except OSError as error:
            raise WorldError(f"no sandbox can be started: {error}") from error
        if not data:
            raise WorldError(f"no sandbox can be started: {self._last_words()}")
        self._socket.settimeout(None)
        self._take(data)
        for level, kind, content in attached:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                return int(_CREDENTIALS.unpack(content[: _CREDENTIALS.size])[0])
        raise WorldError("a sandbox has not said who it is")

    def _watched(self) -> list[int]:
        """Handles of its first process, and of the one that waits for it outside."""
        handles = []
        try:
            for pid in (self.pid, psutil.Process(self.pid).ppid()):
                handles.append(os.pidfd_open(pid))
        except (OSError, psutil.NoSuchProcess) as error:
            for handle in handles:
                os.close(handle)
            raise WorldError(f"a sandbox has ended at once: {self._last_words()}") from error
        return handles

    def counts(self) -> Counts:
        """What was sent in the sandbox's network.

        Raises:
            WorldError: the sandbox is gone.
        """
        try:
            return read_counts(self.pid)
        except OSError as error:
            raise WorldError(f"the sandbox has ended: {error}") from error

    def _new_workshop(self) -> CppBuilder:
        """Compiles behind walls like the ranks', and shows them what it has made."""
        pool = self._pool
        return CppBuilder(pool.built, BUILT, compiling_command(pool.hidden), self._user)

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """The ranks of a world that still run."""
        outside = {}
        # whoever has ended, the whole sandbox too, is not among those that run
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.pid).children():
                with contextlib.suppress(OSError):
                    outside[_name_inside(process.pid)] = process
        return {rank: outside[pid] for rank, pid in enumerate(handle.pids) if pid in outside}

    def _last_words(self) -> str:
        return self._pool.last_words()

    def close(self) -> None:
        """End it, and all that is in it."""
        self._put_away()
        self._hang_up()
        until = time.monotonic() + KILL_PATIENCE
        for pidfd in self._pidfds:
            if not readable(pidfd, until - time.monotonic()):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        self._pidfds.clear()


def _name_inside(pid: int) -> int:
    """A process's number in the innermost namespace that it is in.

    Raises:
        OSError: it is gone.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1])


# This process's sandboxes. --------------------------------------------------------

_pool: SandboxPool | None = None


def new_sandbox(hidden: Sequence[Path] = ()) -> Sandbox:
    """A sandbox that nothing has run in; the first one of a process takes seconds.

    Args:
        hidden: folders that must not be seen inside even if they lie within
            Python's.

    Raises:
        RequestError: there can be no sandbox here; the message says the mend.
        WorldError: it cannot be started.
    """
    global _pool
    if _pool is not None and not (_pool.usable and _pool.hidden == tuple(hidden)):
        _pool.close()
        _pool = None
    if _pool is None:
        _pool = SandboxPool(hidden)
    return _pool.sandbox()
