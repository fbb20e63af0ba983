"""The command under which sandboxes are made: bubblewrap, and what can be seen inside.

Inside there is Python with its packages, read-only, and those modules of the
grader that a rank runs: no oracle, no solution, no test, nobody's files, no
home, no environment, no ``/proc``, nothing that can be written, and no network
but a loopback of its own.  What the ranks in it may ask the kernel for is in
:mod:`grader.rank.seccomp`; ``docs/security.md`` says what is promised.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.core.errors import RequestError
from grader.core.source_locations import SANDBOX

__all__ = ["BUILT", "ROOMS", "SCRATCH", "compiling_command", "missing", "sandbox_command"]

#: Where ranks see the libraries that were compiled from their answers.
BUILT = "/built"

#: Where a compiler writes; no folder that could hold a Python, as /tmp may.
SCRATCH = "/scratch"

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
