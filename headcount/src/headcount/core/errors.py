"""The exceptions of headcount, and the messages for what a machine lacks.

A request that cannot be served raises one of these.  The command line prints the message as one
line and exits with status 2; a notebook shows it without a traceback.  A mistake in the program
that runs is never such an exception: it is a :class:`~headcount.core.verdict.Diagnosis`.

::

    HeadcountError
    ├── RequestError           the request itself was wrong
    │   └── UnreadableFile     a file that is not what it should be
    ├── WorldError             the ranks could not be started or talked to
    └── RunFailed              a function given to run() failed on some rank

    KeyboardInterrupt
    └── Stopped                the user stopped a check or a run
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable
from typing import Any

__all__ = [
    "HeadcountError",
    "RequestError",
    "RunFailed",
    "Stopped",
    "UnreadableFile",
    "WorldError",
    "is_ours",
    "is_shortage",
    "out_of_memory",
    "require_temporary_folder",
    "shortage",
    "signal_name",
]


#: Texts that torch's exceptions have when its allocator gets no memory.
_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "not enough memory")


def out_of_memory(error: BaseException) -> bool:
    """Return whether an exception, Python's or torch's, says that there is no more memory."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, (RuntimeError, OSError)) and any(
        said in arg for arg in error.args if isinstance(arg, str) for said in _NO_MEMORY
    )


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGKILL``; a real-time signal has only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


#: By the system's error number: what the machine lacks, and the mend.
_SHORTAGES = {
    errno.EMFILE: "this process may open no more files: close what you do not use, or raise the"
    " limit (ulimit -n)",
    errno.ENFILE: "this machine can open no more files: end programs that hold many",
    errno.ENOSPC: "the disk is full: free some space, or set TMPDIR to a folder that has some",
    errno.EDQUOT: "your quota of the disk is used up: free some space, or set TMPDIR elsewhere",
    errno.EFBIG: "files may not be so large here: raise the limit (ulimit -f unlimited)",
    errno.EAGAIN: "no more processes can be started: end some, or raise the limit (ulimit -u)",
    errno.ENOMEM: "there is no memory left: end programs that use much",
}


def shortage(error: OSError) -> str:
    """Return what the machine lacks, and the mend, in one sentence."""
    return _SHORTAGES.get(error.errno or 0, f"the system says: {error}")


def is_shortage(error: OSError) -> bool:
    """Return whether an exception says that the machine lacks something that can be mended."""
    return error.errno in _SHORTAGES


class HeadcountError(Exception):
    """The root of every exception that headcount raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints instead of a traceback: the message alone."""
        return [f"{type(self).__name__}: {self}"]


class RequestError(HeadcountError):
    """The request itself was wrong; the message says what to ask instead."""


def require_temporary_folder() -> None:
    """Check that temporary files can be written.

    Raises:
        RequestError: they cannot; the message says the mend.
    """
    import tempfile  # here: most commands need none

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        raise RequestError(
            "no temporary file can be written, in /tmp or elsewhere: make room and allow writing"
            " there, raise the limit on the size of files (ulimit -f unlimited), or name another"
            " folder in TMPDIR"
        ) from None


class UnreadableFile(RequestError):
    """A path that holds no file of the kind that is needed: missing, a folder, binary."""


class WorldError(HeadcountError):
    """The machinery of ranks failed, which is never the fault of the program that runs."""


class RunFailed(HeadcountError):
    """A function given to ``run`` failed; ``failure`` says where and why.

    Args:
        message: the whole text.
        failure: the same as data.
        show: shows it where more than text can be shown, and returns what is left to say in a
            line; an empty string if nothing can be shown there.
    """

    def __init__(
        self, message: str, failure: object, show: Callable[[], str] | None = None
    ) -> None:
        self.failure = failure
        self._show = show
        self._left: str | None = None
        super().__init__(message)

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this where no one has caught the exception, while its cell still runs;
        # it asks again for a copy that it keeps
        if self._left is None:
            self._left = "" if self._show is None else self._show()
        return [f"RunFailed: {self._left}"] if self._left else super()._render_traceback_()


class Stopped(KeyboardInterrupt):
    """The user stopped a check or a run; every rank has been ended."""

    def _render_traceback_(self) -> list[str]:
        return [f"Stopped: {self}"]


def is_ours(error: Any) -> bool:
    """Return whether pytest, which gives what it has caught, is to leave out frames of ours.

    A module whose ``__tracebackhide__`` this is has no frame in pytest's report of an exception
    that says itself what is wrong.
    """
    return issubclass(error.type, HeadcountError)
