"""The logbook: what a learner has checked, in a small file of their own.

The file may be deleted at any time; then the course begins anew.  It is
replaced as a whole, so a reader never sees half of it, and under a lock, so
that two kernels do not lose each other's checks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from grader.core.errors import LogbookError
from grader.core.verdict import ExerciseVerdict

__all__ = ["Entry", "Logbook"]

#: Raised whenever an older grader would misread the file.
VERSION = 1

#: No course has so many exercises that its logbook is larger.
LARGEST = 1 << 20

#: What a file system without locks says.  Then two kernels that end a check
#: within the same millisecond may lose one of both; better than losing all.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})

_Amount = Annotated[float, msgspec.Meta(ge=0)]


class Entry(msgspec.Struct, frozen=True):
    """What is known of one exercise.

    Attributes:
        passed: whether any check passed; a later failure does not take it back.
        best: the best score so far.
        max_score: what could be earned.
        checks: how many checks were made.
        when: the time of the last check, in UTC.
        seconds: how long it took.
        last_passed: whether it passed.
    """

    passed: bool
    best: _Amount
    max_score: _Amount
    checks: Annotated[int, msgspec.Meta(ge=1)]
    when: Annotated[datetime, msgspec.Meta(tz=True)]
    seconds: _Amount
    last_passed: bool


class _Header(msgspec.Struct):
    version: int


class _Book(msgspec.Struct):
    version: int
    exercises: dict[str, Entry]


class Logbook:
    """The file at ``path``.

    Args:
        path: it need not exist, nor its folder; they are made when there is
            something to write.
    """

    def __init__(self, path: Path) -> None:
        # where a link leads: replacing the link itself would part the two
        self.path = Path(os.path.realpath(path))

    def read(self) -> dict[str, Entry]:
        """The entries by exercise; none if there is no file.

        Raises:
            LogbookError: the file cannot be read or understood.
        """
        if not self._exists():
            return {}
        try:
            with self.path.open("rb") as file:
                data = file.read(LARGEST + 1)
        except OSError as error:
            raise LogbookError(
                f"{self.path} cannot be read: {error.strerror}; allow reading it, or delete it"
                " to begin a new one"
            ) from None
        return self._decode(data)

    def _exists(self) -> bool:
        if os.path.lexists(self.path) and not os.path.isfile(self.path):
            # never replaced: it may be a folder, or /dev/null
            raise LogbookError(
                f"{self.path} is no file; set GRADER_PROGRESS to the path of a file, or to"
                " nothing to keep no progress"
            )
        return os.path.lexists(self.path)

    def _decode(self, data: bytes) -> dict[str, Entry]:
        try:
            if len(data) > LARGEST:
                raise ValueError(f"it is larger than {LARGEST >> 20} MB")
            version = msgspec.json.decode(data, type=_Header).version
            if version > VERSION:
                raise LogbookError(
                    f"{self.path} was written by a newer grader (format {version}, this one"
                    f" knows {VERSION}) and is left as it is; update the course, or delete the"
                    " file to begin a new one"
                )
            return msgspec.json.decode(data, type=_Book).exercises
        except ValueError as error:  # msgspec's errors are ValueErrors too
            raise LogbookError(
                f"{self.path} is damaged ({error}); delete it to begin a new one"
            ) from None

    def add(self, verdicts: Iterable[ExerciseVerdict], when: datetime) -> None:
        """Enter the verdicts of a check that ended at ``when``.

        Raises:
            LogbookError: the file cannot be read, understood or written.
        """
        self._exists()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._locked():
                entries = self.read()
                for verdict in verdicts:
                    entries[verdict.name] = _after(entries.get(verdict.name), verdict, when)
                self._replace(msgspec.json.encode(_Book(VERSION, entries)))
        except OSError as error:
            raise self._unwritable(error) from None

    def rehearse(self) -> None:
        """Try whether the file could be written now, and leave no trace.

        Raises:
            LogbookError: it could not.
        """
        folder = self.path.parent
        while not os.path.lexists(folder):
            folder = folder.parent
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b" " * 4096)
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> LogbookError:
        return LogbookError(
            f"{self.path} cannot be written: {error.strerror}; make room or allow writing there,"
            " or set GRADER_PROGRESS to a file elsewhere"
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        # a file of its own, since the other one is replaced
        lock = self.path.with_name(f"{self.path.name}.lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            yield
        finally:
            os.close(descriptor)

    def _replace(self, data: bytes) -> None:
        handle, name = tempfile.mkstemp(prefix=f"{self.path.name}.", dir=self.path.parent)
        try:
            with open(handle, "wb") as file:
                file.write(msgspec.json.format(data, indent=1) + b"\n")
            os.replace(name, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise


def _after(entry: Entry | None, verdict: ExerciseVerdict, when: datetime) -> Entry:
    return Entry(
        passed=verdict.passed or (entry is not None and entry.passed),
        best=max(verdict.score, entry.best if entry else 0.0),
        max_score=verdict.max_score,
        checks=(entry.checks if entry else 0) + 1,
        when=when,
        seconds=verdict.seconds,
        last_passed=verdict.passed,
    )
