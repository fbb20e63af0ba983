"""Sandboxes: the command of bubblewrap under which they are made, and a pool that forks them.

Inside there is Python with its packages, read-only, and those modules of the grader that a rank
imports.  There is no oracle, no solution, no algorithm, no test, no file of any user, no home, no
environment, no ``/proc``, nothing that can be written, and no network but a loopback of its own.
Which system calls the ranks in it may make is said in :mod:`headcount.rank.process_limits`; what is
promised is said in ``docs/security.md``.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
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
from importlib.util import cache_from_source
from pathlib import Path

import psutil

import headcount
from grader.sandbox import SANDBOX
from grader.sandbox.cpp_build import SCRATCH, CppBuilder
from grader.sandbox.kernel_counters import Counts, read_counts
from grader.sandbox.server import USERS
from headcount.core.errors import RequestError, WorldError
from headcount.core.source_locations import OWN_FOLDERS, count_as_own
from headcount.launch.launchers import (
    HELPER_START,
    KILL_PATIENCE,
    Client,
    Helper,
    Launcher,
    ProcessGroupHandle,
    RankEnvironment,
    readable,
)

__all__ = [
    "BUILT",
    "MODULES",
    "Sandbox",
    "SandboxPool",
    "adopt",
    "compiling_command",
    "cpp_builder",
    "missing",
    "new_sandbox",
    "sandbox_command",
]

#: The folder in which ranks see the libraries that were built from their answers.
BUILT = "/built"

#: Bytes of memory for the compiler's files.
_SCRATCH = 256 << 20

#: The modules of ours that are shown: those that ranks, the parser and the compiler import.
#: What simulates ranks is not among them, see :data:`headcount.simulation.launch.MODULES`.
MODULES = (
    "grader",
    "grader.errors",
    "grader.instruments",
    "grader.instruments.clock",
    "grader.instruments.device",
    "grader.instruments.gradients",
    "grader.instruments.groups",
    "grader.instruments.lines",
    "grader.instruments.marks",
    "grader.instruments.operations",
    "grader.instruments.storages",
    "grader.sandbox",
    "grader.sandbox.compiler",
    "grader.sandbox.server",
    "grader.submission",
    "grader.submission.definitions",
    "grader.submission.modules",
    "grader.submission.outline",
    "grader.submission.parsing",
    "grader.submission.source_files",
    "grader.submission.submission",
    "headcount",
    "headcount.core",
    "headcount.core.codec",
    "headcount.core.errors",
    "headcount.core.events",
    "headcount.core.files",
    "headcount.core.notebook",
    "headcount.core.packing",
    "headcount.core.program",
    "headcount.core.random_numbers",
    "headcount.core.set_orders",
    "headcount.core.source_locations",
    "headcount.core.values",
    "headcount.core.verdict",
    "headcount.core.wire",
    "headcount.rank",
    "headcount.rank.arguments",
    "headcount.rank.calling",
    "headcount.rank.guard",
    "headcount.rank.process_limits",
    "headcount.rank.rank_store",
    "headcount.rank.recorder",
    "headcount.rank.recording_group",
    "headcount.rank.replicas",
    "headcount.rank.requests",
    "headcount.rank.same",
    "headcount.rank.threads",
    "headcount.rank.torch_group",
    "headcount.rank.torch_startup",
    "headcount.rank.transports",
    "headcount.rank.transports.gloo",
    "headcount.server",
    "headcount.server.ahead",
    "headcount.server.fork_server",
    "headcount.server.process",
)

#: The names of folders in which packages are installed.
_SITES = ("site-packages", "dist-packages")

#: The parts of a Unix system that a program needs besides Python.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_MACHINE = ("/proc/cpuinfo", "/sys/devices/system/cpu")

# a rank in a sandbox names our modules by their places there
count_as_own(f"{SANDBOX}/grader", f"{SANDBOX}/headcount")

#: The packages of which modules are shown.
_PACKAGES = (Path(__file__).resolve().parent.parent, Path(headcount.__file__).resolve().parent)

#: The folders of a Python that are needed, should the checkout be one.
_PYTHONS = ("bin", "include", "lib", "lib64", "share")

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "PYTHONPATH": SANDBOX,
    # code that the judge sends has file names from outside
    OWN_FOLDERS: os.pathsep.join((f"{SANDBOX}/grader", *map(str, _PACKAGES))),
    "PYTHONSAFEPATH": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "OMP_NUM_THREADS": "1",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}


def missing() -> str:
    """Return why there can be no sandbox here, with the mend, or an empty string."""
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
    """Return the command under which :mod:`grader.sandbox.server` runs.

    Args:
        hidden: folders that must not be seen even if they lie within Python's.
        built: a folder that is shown, read-only, as :data:`BUILT`.

    Raises:
        RequestError: there can be no sandbox here; the message says the mend.
    """
    shown = [] if built is None else ["--ro-bind", str(built), BUILT]
    # needed to fork a sandbox into namespaces of its own, whose ranks have none of them
    rights = ("SYS_ADMIN", "NET_ADMIN", "SETUID", "SETGID", "SETPCAP", "KILL")
    return _bubblewrap(_files(hidden, shown), rights)


def compiling_command(shown: Sequence[Path], hidden: Sequence[Path] = ()) -> list[str]:
    """Return the command under which a submission's C++ is compiled.

    The compiler sees what ranks see, and :data:`SCRATCH`, a folder in memory.  It keeps the
    right to change its user, so that root can become another user inside.

    Args:
        shown: folders that it sees besides, at the same place.
        hidden: as of :func:`sandbox_command`.
    """
    more = ["--perms", "1777", "--size", str(_SCRATCH), "--tmpfs", SCRATCH]
    seen = (*map(Path, _SYSTEM), *_python())
    for folder in shown:
        if any(folder.is_relative_to(top) for top in seen):
            continue
        more += _open_folders(*map(str, reversed(folder.parents[:-1])))
        more += ["--ro-bind", str(folder), str(folder)]
    return _bubblewrap(_files(hidden, more), ("SETUID", "SETGID"))


def _bubblewrap(files: Sequence[str], rights: Sequence[str]) -> list[str]:
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
    """Return bubblewrap's options for the files shown, read-only except for ``more``."""
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
    empty: list[Path] = []
    for folder in sorted({*_hidden_of_ours(shown), *(Path(one).resolve() for one in hidden)}):
        within = [top for top in (*map(Path, _SYSTEM), *shown) if folder.is_relative_to(top)]
        if within and folder not in shown and not any(map(folder.is_relative_to, empty)):
            empty.append(folder)  # what is in it is hidden with it
            options += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
    options += _open_folders("/dev", SANDBOX)
    for name in MODULES:
        options += _module(name)
    for name in _DEVICES:
        options += ["--dev-bind", name, name]
    return [*options, *more, "--remount-ro", "/"]


def _hidden_of_ours(shown: Sequence[Path]) -> Iterator[Path]:
    """Yield what must be hidden of our packages and the course, should it lie among ``shown``."""
    for package in _PACKAGES:
        yield package
        # another one may be installed, too
        yield from (path for entry in sys.path if (path := Path(entry, package.name)).is_dir())
        checkout = package.parent
        if checkout in shown:
            folders = (path for path in checkout.iterdir() if path.is_dir())
            yield from (path for path in folders if path.name not in _PYTHONS)
        elif checkout.name not in _SITES:  # there it is installed, beside what ranks need
            yield checkout


def _module(name: str) -> Iterator[str]:
    """Yield options that show a module of ours, and its compiled code if that is there."""
    first, *rest = name.split(".")
    path = next(one for one in _PACKAGES if one.name == first).joinpath(*rest)
    inside = f"{SANDBOX}/{'/'.join((first, *rest))}"
    if path.is_dir():
        yield from _open_folders(inside)
        path, inside = path / "__init__.py", f"{inside}/__init__.py"
    else:
        path, inside = path.with_suffix(".py"), f"{inside}.py"
    yield from ("--ro-bind", str(path), inside)
    compiled = Path(cache_from_source(path))
    if compiled.is_file():
        inside = cache_from_source(inside)
        yield from _open_folders(os.path.dirname(inside))
        yield from ("--ro-bind-try", str(compiled), inside)


def _open_folders(*names: str) -> list[str]:
    """Return options that make folders passable, which bubblewrap makes for its user alone."""
    return [word for name in names for word in ("--perms", "0755", "--dir", name)]


def _python() -> Iterator[Path]:
    """Yield the folders of this Python, outer ones first and none twice."""
    folders = {Path(folder) for folder in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    # a link on the way to the interpreter must lead somewhere inside, too
    link = Path(sys.executable)
    while link.is_symlink():
        link = Path(os.path.normpath(link.parent / os.readlink(link)))
        folders.add(link.parent.parent)
    for entry in map(Path, sys.path):
        if entry.name in _SITES and entry.is_dir():
            folders.add(entry)
    kept: list[Path] = []
    for folder in sorted(folders, key=lambda one: len(one.parts)):
        if folder == Path("/") or any(folder.is_relative_to(top) for top in kept):
            continue
        if not any(folder.is_relative_to(top) for top in _SYSTEM):
            kept.append(folder)
    return iter(kept)


# Sandboxes, forked from one process that has imported torch. ----------------------

#: The first user ids of sandboxes.  None belongs to an account: systemd's range for transient
#: services.
_FIRST_USERS = range(61184, 65520 - USERS + 1, USERS)

_CREDENTIALS = struct.Struct("=iII")


def _claim_users() -> tuple[int, socket.socket]:
    """Claim user ids that no other sandbox on this machine has.

    The kernel counts threads and more by user, so that two sandboxes with the same users would
    disturb each other.  A name in the abstract namespace of Unix sockets (see ``unix(7)``) belongs
    to one socket at a time, and to none once its process is gone, however that ended.

    Returns:
        The first of the user ids, and the socket that holds the claim until it is closed.

    Raises:
        WorldError: all of them are claimed.
    """
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for user in _FIRST_USERS:
        try:
            claim.bind(f"\0gather-round/users/{user}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                claim.close()
                raise WorldError(f"no sandbox can be started: {error}") from error
        else:
            return user, claim
    claim.close()
    raise WorldError(f"at most {len(_FIRST_USERS)} sandboxes can run on a machine at a time")


class SandboxPool:
    """A process in bubblewrap that forks sandboxes, and runs no submission's code itself.

    Args:
        hidden: folders that must not be seen inside even if they lie within
            Python's.

    Raises:
        RequestError: there can be no sandbox here; the message says the mend.
    """

    @staticmethod
    def rehearse() -> None:
        """Make an empty sandbox, which takes a fraction of a second, to see whether it works.

        Raises:
            RequestError: there can be no sandbox here; the message says why.
        """
        command = [*sandbox_command(), sys.executable, "-m", "grader.sandbox.server"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise RequestError(f"the sandbox does not start here: {why[0]}")

    def __init__(self, hidden: Sequence[Path] = ()) -> None:
        self.hidden = tuple(hidden)
        self._built = tempfile.TemporaryDirectory(prefix="grader-")
        self.built = Path(self._built.name)
        # inside, users can read a library whose name they know, and cannot list the others
        self.built.chmod(0o711)
        command = sandbox_command(hidden, self.built)
        # whole messages, since several processes may ask
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._helper = Helper("grader.sandbox.server", theirs, prefix=command)
        self._ready = False
        self._adopter: int | None = None
        atexit.register(self.close)

    @property
    def usable(self) -> bool:
        """Whether it runs, and this process has started or adopted it."""
        return self._helper.usable or (self._adopted and self._answers())

    @property
    def _adopted(self) -> bool:
        return self._adopter == os.getpid()

    def _answers(self) -> bool:
        """Return whether the other end of the socket is open."""
        if not readable(self.connection.fileno(), 0):
            return True
        with contextlib.suppress(OSError):
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        return False

    def adopt(self) -> None:
        """Use it in this process, a fork of the one that has started it and that ends it.

        Several forks may use it at a time, if it has been waited for before.
        """
        self._adopter = os.getpid()

    @property
    def pid(self) -> int:
        """The process id of the command that it runs under."""
        return self._helper.pid

    def last_line(self) -> str:
        """Return the last line that it, or a sandbox that failed, wrote to standard error."""
        return self._helper.last_line() or "it says nothing"

    def sandbox(self) -> Sandbox:
        """Return a new sandbox.

        Raises:
            WorldError: it cannot be started.
        """
        self.wait()
        return Sandbox(self)

    def wait(self) -> None:
        """Wait until it can fork sandboxes.

        Raises:
            WorldError: it does not start.
        """
        if self._ready:
            return
        self.connection.settimeout(HELPER_START)
        try:
            self._ready = bool(self.connection.recv(16))
        except TimeoutError:
            raise WorldError(f"sandboxes took over {HELPER_START:.0f} s to start") from None
        if not self._ready:
            raise WorldError(f"no sandbox can be started: {self.last_line()}")

    def ask(self, user: int | None, passed: int) -> None:
        """Ask for a sandbox.

        Args:
            user: the first of the user ids that it takes inside; None to keep the only one there
                is.
            passed: the descriptor of its socket.

        Raises:
            WorldError: the pool's process is gone.
        """
        try:
            socket.send_fds(self.connection, [json.dumps({"user": user}).encode()], [passed])
        except OSError as error:
            raise WorldError(f"no sandbox can be started: {error}; {self.last_line()}") from error

    def close(self) -> None:
        """End the pool and all its sandboxes; one that was adopted is only used no longer."""
        if self._adopted:
            self._adopter = None
            self.connection.close()
        if not self._helper.is_own:
            return
        atexit.unregister(self.close)
        self.connection.close()
        self._helper.end()
        self._built.cleanup()


class Sandbox(Client):
    """A launcher whose fork server is in a sandbox; made by :meth:`SandboxPool.sandbox`."""

    def __init__(self, pool: SandboxPool) -> None:
        super().__init__(RankEnvironment(path=[], folder="/", sealed=True))
        self._pool = pool
        self._cpp_builder: CppBuilder | None = None
        self._user: int | None = None
        self._claim: socket.socket | None = None
        if os.geteuid() == 0:
            self._user, self._claim = _claim_users()
        # the kernel then adds the sender's process id, as it is numbered out here
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            with self.their_end as theirs:
                pool.ask(self._user, theirs.fileno())
            self.pid = self._introduction()
            self._pidfds = self._watched()
        except WorldError:
            self.connection.close()
            self._release_users()
            raise

    def _introduction(self) -> int:
        """Wait for the first message, and return the process id of its sender."""
        self.connection.settimeout(HELPER_START)
        try:
            data, attached, _, _ = self.connection.recvmsg(1 << 16, socket.CMSG_SPACE(64))
        except TimeoutError:
            raise WorldError(f"a sandbox took over {HELPER_START:.0f} s to start") from None
        except OSError as error:
            raise WorldError(f"no sandbox can be started: {error}") from error
        if not data:
            raise WorldError(f"no sandbox can be started: {self.last_line()}")
        self.connection.settimeout(None)
        self.take_reports(data)
        for level, kind, content in attached:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                return int(_CREDENTIALS.unpack(content[: _CREDENTIALS.size])[0])
        raise WorldError("a sandbox has not said who it is")

    def _watched(self) -> list[int]:
        """Return handles of its first process, and of the one outside that waits for it."""
        handles = []
        try:
            for pid in (self.pid, psutil.Process(self.pid).ppid()):
                handles.append(os.pidfd_open(pid))
        except (OSError, psutil.NoSuchProcess) as error:
            for handle in handles:
                os.close(handle)
            raise WorldError(f"a sandbox has ended at once: {self.last_line()}") from error
        return handles

    def launch(self, size: int) -> ProcessGroupHandle:
        """Ask for the ranks of a world, as :meth:`Client.launch` does.

        Raises:
            RequestError: there are fewer users.
            WorldError: the ranks cannot be started.
        """
        if size >= USERS:
            raise RequestError(f"a world in a sandbox has at most {USERS - 1} ranks, not {size}")
        return super().launch(size)

    def counts(self) -> Counts:
        """Return the counters of the sandbox's network.

        Raises:
            WorldError: the sandbox is gone.
        """
        try:
            return read_counts(self.pid)
        except OSError as error:
            raise WorldError(f"the sandbox has ended: {error}") from error

    def cpp_builder(self) -> CppBuilder:
        """Return the builder that compiles in a sandbox and shows its libraries to the ranks."""
        pool = self._pool
        if self._cpp_builder is None:
            self._cpp_builder = CppBuilder(
                pool.built, BUILT, lambda shown: compiling_command(shown, pool.hidden), self._user
            )
        return self._cpp_builder

    def processes(self, handle: ProcessGroupHandle) -> dict[int, psutil.Process]:
        """Return the ranks of a world that still run."""
        outside = {}
        # the sandbox itself may have ended, and a rank may end meanwhile
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.pid).children(recursive=True):
                with contextlib.suppress(OSError):
                    outside[_name_inside(process.pid)] = process
        return {rank: outside[pid] for rank, pid in enumerate(handle.pids) if pid in outside}

    def last_line(self) -> str:
        """Return what the pool has said last, which its sandboxes' complaints are part of."""
        return self._pool.last_line()

    def close(self) -> None:
        """End the sandbox and every process in it."""
        if self._cpp_builder is not None:
            self._cpp_builder.close()
            self._cpp_builder = None
        self.disconnect()
        until = time.monotonic() + KILL_PATIENCE
        for pidfd in self._pidfds:
            if not readable(pidfd, until - time.monotonic()):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        self._pidfds.clear()
        self._release_users()

    def _release_users(self) -> None:
        if self._claim is not None:
            self._claim.close()


def _name_inside(pid: int) -> int:
    """Return a process's id in the innermost namespace that it is in.

    Raises:
        OSError: it is gone.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1])


# C++ answers. ---------------------------------------------------------------------


@functools.cache
def _own_builder() -> CppBuilder:
    """Return the builder of answers whose ranks are in no sandbox."""
    builder = CppBuilder()
    atexit.register(builder.close)
    return builder


def cpp_builder(launcher: Launcher) -> CppBuilder:
    """Return the builder of C++ answers; it compiles in a sandbox if the ranks run in one."""
    return launcher.cpp_builder() if isinstance(launcher, Sandbox) else _own_builder()


# This process's sandboxes. --------------------------------------------------------

_pool: SandboxPool | None = None


def adopt(pool: SandboxPool) -> None:
    """Make sandboxes of this process by a pool that the process it was forked from has started."""
    global _pool
    pool.adopt()
    _pool = pool


def new_sandbox(hidden: Sequence[Path] = ()) -> Sandbox:
    """Return a fresh sandbox; the first one of a process takes seconds.

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
