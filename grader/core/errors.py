"""The exceptions of the grader, and the messages for what a machine or a file lacks.

A request that cannot be served raises one of these.  The command line prints the message as one
line and exits with status 2; a notebook shows it without a traceback.  A mistake in a *student's*
code is never such an exception: it is a :class:`~grader.core.verdict.Diagnosis` in a verdict.

::

    GraderError
    ├── RequestError           the request itself was wrong
    │   ├── MissingPackage     an optional package is not installed
    │   ├── UnknownExercise    no exercise of that name in the course
    │   └── UnreadableFile     a file that is no submission
    ├── DeclarationError       an exercise is declared wrongly
    ├── WorldError             the grader could not start or talk to its ranks
    ├── ProgressFileError      the file of a learner's progress cannot be used
    └── RunFailed              a function given to run() failed on some rank

    KeyboardInterrupt
    └── Stopped                the user stopped a check or a run
"""

from __future__ import annotations

import difflib
import errno
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = [
    "DeclarationError",
    "GraderError",
    "LARGEST_FILE",
    "MissingPackage",
    "ProgressFileError",
    "RequestError",
    "RunFailed",
    "Stopped",
    "UnknownExercise",
    "UnreadableFile",
    "WorldError",
    "code_kind",
    "contents",
    "is_ours",
    "is_shortage",
    "out_of_memory",
    "require_temporary_folder",
    "shortage",
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


class GraderError(Exception):
    """The root of every exception that the grader raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints instead of a traceback: the message alone."""
        return [f"{type(self).__name__}: {self}"]


class RequestError(GraderError):
    """The request itself was wrong; the message says what to ask instead."""


#: Modules of packages that the engine does without, and the extra that installs each.
_EXTRAS = {
    "IPython": "course",
    "PIL": "course",
    "cryptography": "class",
    "distributed": "class",
    "ipywidgets": "course",
    "jinja2": "class",
    "matplotlib": "course",
    "tomli": "class",
    "yaml": "class",
}


class MissingPackage(RequestError):
    """What was asked for needs a package that is not installed.

    Args:
        what: what was asked for.
        module: the module that is not there, one of an extra's.
    """

    def __init__(self, what: str, module: str) -> None:
        extra = _EXTRAS[module]
        super().__init__(
            f"{what} needs {module}, which is not installed: pip install 'gather-round[{extra}]'"
        )

    @classmethod
    def of(cls, what: str, error: ModuleNotFoundError) -> MissingPackage | None:
        """Return the error for a module that was not found; None if no extra installs it."""
        module = (error.name or "").partition(".")[0]
        return cls(what, module) if module in _EXTRAS else None


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


class UnknownExercise(RequestError, KeyError):
    """The course has no exercise of this name.

    It is also a :class:`KeyError`, which the ``get`` of a mapping such as the catalogue expects.

    Args:
        name: the name that was asked for.
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
    """An exercise of the course is declared wrongly; the message is for maintainers."""


class WorldError(GraderError):
    """The grader's own machinery failed, which is never the student's fault."""


class ProgressFileError(GraderError):
    """The file of a learner's progress cannot be read or written; the message says the mend."""


class RunFailed(GraderError):
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
    that says itself what is wrong; see the end of :mod:`grader` for a script's.
    """
    return issubclass(error.type, GraderError)


# Reading a file that the user named. ----------------------------------------------

#: Largest size of a submission in bytes; the largest solved notebook of the course has 1 MB.
LARGEST_FILE = 32 << 20


#: The end of a name that tells the kind of a file.  Browsers save a notebook as ``.ipynb.json`` or
#: ``.ipynb.txt``, and put the counter of a second download before the last ending.
_ENDING = re.compile(
    r"(?P<kind>\.py|\.ipynb)(?:(?P<copy>[-_ ]?\(?\d{1,3}\)?)?\.(?:txt|json))?\Z", re.IGNORECASE
)


def code_kind(name: str) -> tuple[str, str]:
    """Return a file's name without the ending that tells its kind, and the kind.

    Args:
        name: the name, or a path.

    Returns:
        The kind is ``.py``, ``.ipynb``, or empty for a file that holds neither.
    """
    found = _ENDING.search(name)
    if found is None:
        return name, ""
    return name[: found.start()] + (found["copy"] or ""), found["kind"].lower()


def contents(
    path: Path,
    wanted: str = ".py or .ipynb",
    largest: int = LARGEST_FILE,
    read: Callable[[Path], bytes] = Path.read_bytes,
) -> bytes:
    """Return all bytes of a file that the user named.

    Args:
        path: the path as it was given.
        wanted: suffixes of such files, named in the message if the path is a folder's.
        largest: bytes that it may have.
        read: what is called to read it.

    Raises:
        UnreadableFile: the file does not exist, is not a regular file, is too large, or cannot
            be read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableFile(f"{path} is a folder; name a {wanted} file in it")
        if not stat.S_ISREG(mode):
            raise UnreadableFile(f"{path} is no regular file")
        if path.stat().st_size > largest:
            raise UnreadableFile(f"{path} is larger than {largest >> 20} MB")
        return read(path)
    except FileNotFoundError:
        raise UnreadableFile(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnreadableFile(f"{path} cannot be read: {reason}") from None
