"""Folders and files as strangers leave them, on a disk or out of an archive.

A tree has three kinds of node: a :class:`File` that can be read, a folder, and
an :class:`UnopenedEntry`, which is anything that will not be opened, with the reason.
On a disk no symbolic link is ever followed: every part of a path is opened
beneath its parent with ``O_NOFOLLOW``, files without blocking, and what has
been opened must turn out to be a regular file.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, TypeAlias

from grader.classroom.names import shown
from grader.core.errors import LARGEST_FILE, UnreadableFile

__all__ = [
    "ARCHIVES",
    "Bounds",
    "CLASS",
    "DiskFolder",
    "File",
    "Folder",
    "MemoryFolder",
    "Meter",
    "Node",
    "UnopenedEntry",
    "STUDENT",
    "ArchiveTooLarge",
    "ExtractionDir",
    "describe",
    "is_archive",
    "is_code",
    "is_junk",
    "open_file",
    "read_whole",
    "stem",
]


#: Endings of what can be graded, and of what may hold it.
CODE = (b".py", b".ipynb")
ARCHIVES = (
    *(b".tar" + packed for packed in (b".gz", b".bz2", b".xz")),
    *(b".zip", b".tar", b".tgz", b".tbz2", b".txz"),
)

#: Entries of one folder that are looked at.
WIDEST = 20_000

_CHUNK = 1 << 20

_JUNK = frozenset(
    {
        *(b"__macosx", b".ds_store", b"thumbs.db", b"desktop.ini"),
        *(b".ipynb_checkpoints", b"__pycache__", b".git", b".svn", b".hg", b".idea", b".vscode"),
        *(b".venv", b"venv", b"virtualenv", b"site-packages", b"node_modules"),
        *(b".tox", b".nox", b".mypy_cache", b".pytest_cache"),
    }
)

_KINDS = {
    stat.S_ISLNK: "a symbolic link",
    stat.S_ISFIFO: "a FIFO",
    stat.S_ISSOCK: "a socket",
    stat.S_ISBLK: "a device",
    stat.S_ISCHR: "a device",
}


@dataclass(frozen=True)
class File:
    """A regular file: its name, its claimed size, and how to open it."""

    name: bytes
    size: int
    open: Callable[[], BinaryIO]


@dataclass(frozen=True)
class UnopenedEntry:
    """Something that is not opened; ``reason`` completes "<name> is …"."""

    name: bytes
    reason: str


class Folder(Protocol):
    """A folder, listed when asked."""

    @property
    def name(self) -> bytes:
        """Its own name."""

    def children(self) -> list[Node]:
        """What is in it, in the order of the names' bytes.

        Raises:
            UnreadableFile: it cannot be listed.
        """


Node: TypeAlias = "File | Folder | UnopenedEntry"


@dataclass
class MemoryFolder:
    """A folder out of an archive."""

    name: bytes
    nodes: dict[bytes, Node] = field(default_factory=dict)

    def children(self) -> list[Node]:
        """What is in it."""
        return [self.nodes[name] for name in sorted(self.nodes)]


@dataclass(frozen=True)
class DiskFolder:
    """A folder on a disk: ``parts`` beneath the folder that ``root`` is open on."""

    root: int
    parts: tuple[bytes, ...]

    @property
    def name(self) -> bytes:
        """Its own name; empty for the root."""
        return self.parts[-1] if self.parts else b""

    def children(self) -> list[Node]:
        """What is in it."""
        try:
            handle = _descend(self.root, self.parts)
            try:
                nodes = list(self._list(handle))
            finally:
                os.close(handle)
        except OSError as error:
            raise UnreadableFile(f"cannot be opened: {error.strerror}") from None
        return sorted(nodes, key=lambda node: node.name)

    def _list(self, handle: int) -> Iterator[Node]:
        with os.scandir(handle) as entries:
            for number, entry in enumerate(entries):
                if number >= WIDEST:
                    raise UnreadableFile(f"has more than {WIDEST} entries; none is looked at")
                name = os.fsencode(entry.name)
                path = (*self.parts, name)
                try:
                    about = entry.stat(follow_symlinks=False)
                except OSError as error:
                    yield UnopenedEntry(name, f"out of reach: {error.strerror}")
                    continue
                if stat.S_ISDIR(about.st_mode):
                    yield DiskFolder(self.root, path)
                elif stat.S_ISREG(about.st_mode):
                    yield File(name, about.st_size, lambda path=path: self._open(path))  # type: ignore[misc]
                else:
                    kind = next((k for test, k in _KINDS.items() if test(about.st_mode)), None)
                    yield UnopenedEntry(name, f"{kind or 'no file'}, which is not opened")

    def _open(self, path: tuple[bytes, ...]) -> BinaryIO:
        folder = _descend(self.root, path[:-1])
        try:
            return _regular(path[-1], folder)
        finally:
            os.close(folder)


def _descend(root: int, parts: tuple[bytes, ...]) -> int:
    """A handle on a folder beneath another; no part of the way may be a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(b".", flags, dir_fd=root)
    for part in parts:
        try:
            below = os.open(part, flags, dir_fd=handle)
        finally:
            os.close(handle)
        handle = below
    return handle


def _regular(path: bytes, folder: int | None) -> BinaryIO:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    handle = os.open(path, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "it is no regular file")
    return os.fdopen(handle, "rb")


def open_file(path: Path) -> BinaryIO:
    """A regular file that the caller of the grader named.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    return _regular(os.fsencode(path), None)


def read_whole(node: File, label: str) -> bytes:
    """The contents of a file.

    Raises:
        UnreadableFile: it cannot be read, or is too large by now.
    """
    pieces = []
    size = 0
    try:
        with node.open() as stream:
            while piece := stream.read(_CHUNK):
                pieces.append(piece)
                size += len(piece)
                if size > LARGEST_FILE:
                    raise UnreadableFile(f"{label} is larger than {LARGEST_FILE >> 20} MB")
    except OSError as error:
        raise UnreadableFile(f"{label} cannot be read: {error.strerror}") from None
    return b"".join(pieces)


def is_junk(name: bytes) -> bool:
    """Whether a name is one that programs leave behind, not people."""
    return name.lower() in _JUNK or name.startswith(b"._")


def is_code(name: bytes) -> bool:
    """Whether a name is that of a Python file or a notebook."""
    return name.lower().endswith(CODE)


def is_archive(name: bytes) -> bool:
    """Whether a name is that of an archive that can be opened."""
    return name.lower().endswith(ARCHIVES)


def stem(name: bytes) -> bytes:
    """A file's name without the ending that says what it is."""
    ending = next((e for e in (*ARCHIVES, *CODE) if name.lower().endswith(e)), b"")
    return name[: len(name) - len(ending)] or name


def describe(path: tuple[bytes, ...]) -> str:
    """A path within a submission, for people."""
    return "/".join(shown(part).replace("/", "\\x2f") for part in path)


# A private folder for what comes out of archives, and the bounds of an archive. ----
#
# Nothing is ever stored under a name that a stranger chose: files are numbered.

_MB = 1 << 20


class ArchiveTooLarge(Exception):
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
STUDENT = Bounds(20_000, 512 * _MB, 2 * LARGEST_FILE, LARGEST_FILE, 8 * _MB)

#: The download of a whole class; students' own archives are files in it.  Its
#: ratio is generous: one student's zeros must not cost the others their grades.
CLASS = Bounds(500_000, 32 << 30, 8 << 30, 4 * LARGEST_FILE, 128 * _MB, ratio=20_000)


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
            raise ArchiveTooLarge(
                f"has more than {self.bounds.members} members; the rest is not looked at"
            )

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
            raise ArchiveTooLarge(f"unpacks to more than {self.bounds.unpacked >> 20} MB")

    def keep(self, size: int) -> None:
        """So many bytes are kept."""
        self._kept += size
        if self._kept > self.bounds.kept:
            raise ArchiveTooLarge(f"holds more than {self.bounds.kept >> 20} MB of files to grade")


class ExtractionDir:
    """A temporary folder that only this user can enter; gone when closed.

    Args:
        room: bytes that it takes in all.
    """

    def __init__(self, room: int = 8 << 30) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="grader-arrivals-")
        self._room = room
        self._number = 0

    def __enter__(self) -> ExtractionDir:
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
                        raise ArchiveTooLarge(
                            "does not fit: the whole class has used up the disk's share"
                        )
                    stream.write(piece)
        except BaseException:
            path.unlink()
            raise
        self._room -= taken
        return path

    def reader(self, path: Path) -> BinaryIO:
        """What was stored."""
        return path.open("rb")
