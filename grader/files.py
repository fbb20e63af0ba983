"""Files that are written as a whole, and locks that end with the process that holds them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["is_unfinished", "locked", "make_private_folder", "replace_file"]

#: Prefix and suffix of unfinished files, by which those of a killed process are recognised.
_PART = (".grader-", ".part")


def replace_file(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file as a whole: a reader finds the old contents or the new ones.

    A link stays a link, and the file that it leads to is replaced.  A folder that does not exist
    is made for its owner alone.

    Args:
        path: the file.
        data: the new contents.
        mode: its permissions; None to keep those of the file, or let only the owner read a new one.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    path = Path(os.path.realpath(path))
    make_private_folder(path.parent)
    if mode is None:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_PART[0], suffix=_PART[1])
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):  # the first error is the one to report
            os.unlink(name)
        raise


def is_unfinished(path: Path) -> bool:
    """Return whether a path has the name of a file that a killed process has left unfinished."""
    return path.name.startswith(_PART[0]) and path.name.endswith(_PART[1])


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may look into; one that exists stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def locked(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold the lock on a file, which is made if it does not exist.

    The lock is ``flock`` itself, which the kernel releases when a process dies.

    Args:
        path: a file for the lock alone, since one that is replaced takes its lock with it.
        wait: whether to wait for another process that holds the lock.

    Raises:
        BlockingIOError: another process holds it, and nobody waits.
        OSError: the file cannot be opened, or its file system has no locks.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
