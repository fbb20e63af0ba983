"""A private folder for what comes out of archives, and the bounds of an archive.

Nothing is ever stored under a name that a stranger chose: files are numbered.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from grader.core.reading import LARGEST

__all__ = ["CLASS", "STUDENT", "Bounds", "Meter", "TooMuch", "Vault"]

_MB = 1 << 20


class TooMuch(Exception):
    """An archive goes beyond a bound; the message completes "<name> …"."""


@dataclass(frozen=True)
class Bounds:
    """What an archive may cost, or all archives of a student together.

    Attributes:
        members: how many things may be in them.
        unpacked: bytes that may be unpacked in reading it, kept or not.
        kept: bytes of its files that are kept.
        file: bytes of one file.
        directory: bytes of what describes it (a zip's directory).
        ratio: how many times larger unpacked than packed, once past ``slack``.
        slack: bytes that may be unpacked at any ratio.
    """

    members: int
    unpacked: int
    kept: int
    file: int
    directory: int
    ratio: int = 250
    slack: int = 8 * _MB


#: A student's own archive.  A solved notebook of the course has about 1 MB.
STUDENT = Bounds(20_000, 512 * _MB, 2 * LARGEST, LARGEST, 8 * _MB)

#: The download of a whole class; students' own archives are files in it.  Its
#: ratio is generous: one student's zeros must not cost the others their grades.
CLASS = Bounds(500_000, 32 << 30, 8 << 30, 4 * LARGEST, 128 * _MB, ratio=20_000)


class Meter:
    """What has been spent of the bounds, by all archives that share them.

    Args:
        bounds: what may be spent.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._members = self._unpacked = self._delivered = self._kept = 0

    def member(self) -> None:
        """There is one more thing.

        Raises:
            TooMuch: it goes beyond the bounds; so do the other methods.
        """
        self._members += 1
        if self._members > self.bounds.members:
            raise TooMuch(f"has more than {self.bounds.members} members; the rest is not looked at")

    def unpack(self, size: int) -> None:
        """So many bytes came out of a packed stream."""
        self._unpacked += size
        self._check(self._unpacked)

    def deliver(self, size: int) -> None:
        """So many bytes of members were read; there may be more of them than in the stream."""
        self._delivered += size
        self._check(self._delivered)

    def _check(self, size: int) -> None:
        if size > self.bounds.unpacked:
            raise TooMuch(f"unpacks to more than {self.bounds.unpacked >> 20} MB")

    def keep(self, size: int) -> None:
        """So many bytes are kept."""
        self._kept += size
        if self._kept > self.bounds.kept:
            raise TooMuch(f"holds more than {self.bounds.kept >> 20} MB of files to grade")


class Vault:
    """A temporary folder that only this user can enter; gone when closed.

    Args:
        room: bytes that it takes in all.
    """

    def __init__(self, room: int = 8 << 30) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="grader-arrivals-")
        self._room = room
        self._number = 0

    def __enter__(self) -> Vault:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def store(self, pieces: Iterable[bytes]) -> Path:
        """Keep what comes, in a file of its own.

        Raises:
            TooMuch: there is no room for it; nothing of it is kept.
        """
        self._number += 1
        path = Path(self._folder.name, f"{self._number:08d}")
        taken = 0
        try:
            with path.open("xb") as stream:
                for piece in pieces:
                    taken += len(piece)
                    if taken > self._room:
                        raise TooMuch("does not fit: the whole class has used up the disk's share")
                    stream.write(piece)
        except BaseException:
            path.unlink()
            raise
        self._room -= taken
        return path

    def reader(self, path: Path) -> BinaryIO:
        """What was stored."""
        return path.open("rb")
