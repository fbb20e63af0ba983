"""The exceptions of the grader.

A request that cannot be served raises one of these; the command line prints
the message as one line and exits with status 2, a notebook shows it without a
traceback.  What a *student's* code does wrong is never an exception of ours:
it is a :class:`~grader.core.verdict.Diagnosis` in a verdict.

::

    GraderError
    ├── RequestError           the request itself was wrong
    │   ├── UnknownExercise    no exercise of that name in the course
    │   └── UnreadableFile     a file that is no submission
    ├── DeclarationError       an exercise is declared wrongly
    ├── WorldError             the grader could not start or talk to its ranks
    ├── LogbookError           the file of a learner's progress cannot be used
    └── RunFailed              a function given to run() failed on some rank

    KeyboardInterrupt
    └── Stopped                the user stopped a check or a run
"""

from __future__ import annotations

import difflib
import errno
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "DeclarationError",
    "GraderError",
    "LARGEST_FILE",
    "ProgressFileError",
    "RequestError",
    "RunFailed",
    "Stopped",
    "UnknownExercise",
    "UnreadableFile",
    "WorldError",
    "contents",
    "out_of_memory",
    "shortage",
]


#: What torch says when its allocator gets no memory.
_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "not enough memory")


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception, Python's or torch's, says that there is no more memory."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, (RuntimeError, OSError)) and any(
        said in arg for arg in error.args if isinstance(arg, str) for said in _NO_MEMORY
    )


#: What a machine lacks when the system gives one of these, and what to do about it.
_SHORTAGES = {
    errno.EMFILE: "this process may open no more files: close what you do not use, or raise the"
    " limit (ulimit -n)",
    errno.ENFILE: "this machine can open no more files: end programs that hold many",
    errno.ENOSPC: "the disk is full: free some space, or set TMPDIR to a folder that has some",
    errno.EDQUOT: "your quota of the disk is used up: free some space, or set TMPDIR elsewhere",
    errno.EAGAIN: "no more processes can be started: end some, or raise the limit (ulimit -u)",
    errno.ENOMEM: "there is no memory left: end programs that use much",
}


def shortage(error: OSError) -> str:
    """What the machine lacks, and the mend, in one sentence."""
    return _SHORTAGES.get(error.errno or 0, f"the system says: {error}")


class GraderError(Exception):
    """The root of every exception that the grader raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints instead of a traceback: the message alone."""
        return [f"{type(self).__name__}: {self}"]


class RequestError(GraderError):
    """The request itself was wrong; the message says what to ask instead."""


class UnknownExercise(RequestError, KeyError):
    """The course has no exercise of this name.

    It is a :class:`KeyError`, too, so that the catalogue is a mapping in all
    respects (``get`` asks for that).

    Args:
        name: what was asked for.
        known: the names of the course, from which a near one is suggested.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        near = difflib.get_close_matches(name, list(known), n=1)
        mend = f"did you mean {near[0]}?" if near else "`python -m grader list` shows them all."
        super().__init__(f"there is no exercise named {name!r}; {mend}")

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show it in quotes


class UnreadableFile(RequestError):
    """A path that holds no submission: missing, a folder, binary, no notebook."""


class DeclarationError(GraderError):
    """An exercise of the course is declared wrongly; for maintainers."""


class WorldError(GraderError):
    """The grader's own machinery failed; never the student's fault."""


class ProgressFileError(GraderError):
    """The file of a learner's progress cannot be read or written; says the mend."""


class RunFailed(GraderError):
    """A function given to ``run`` failed; ``failure`` says where and why."""

    def __init__(self, message: str, failure: object) -> None:
        self.failure = failure
        super().__init__(message)


class Stopped(KeyboardInterrupt):
    """The user stopped a check or a run; every rank has been ended."""

    def _render_traceback_(self) -> list[str]:
        return [f"Stopped: {self}"]


# A file that somebody named, and what can be wrong with it. -----------------------

#: No submission is larger: the largest solved notebook of the course has 1 MB.
LARGEST_FILE = 32 << 20


def contents(path: Path, wanted: str = ".py or .ipynb") -> bytes:
    """All bytes of a file that somebody named.

    Args:
        path: as they named it.
        wanted: how the names of such files end, for those who name a folder.

    Raises:
        UnreadableFile: it is not there, no file, too large, or not to be read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableFile(f"{path} is a folder; name a {wanted} file in it")
        if not stat.S_ISREG(mode):
            raise UnreadableFile(f"{path} is no regular file")
        if path.stat().st_size > LARGEST_FILE:
            raise UnreadableFile(f"{path} is larger than {LARGEST_FILE >> 20} MB")
        return path.read_bytes()
    except FileNotFoundError:
        raise UnreadableFile(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnreadableFile(f"{path} cannot be read: {reason}") from None
