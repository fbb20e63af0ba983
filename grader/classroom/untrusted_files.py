"""Folders, files and archives that come from untrusted people.

A tree has three kinds of node: a :class:`File` that can be read, a folder, and
an :class:`UnopenedEntry`, which stands for anything that will not be opened, with
the reason.  On a disk no symbolic link is ever followed: every part of a path is
opened beneath its parent with ``O_NOFOLLOW``, files without blocking, and what has
been opened must turn out to be a regular file.

Zip and tar archives become such trees, within bounds.  An archive's own claims
about itself are not believed: bytes are counted as they come out, and unpacking
ends at the bound.  Members that lead out of the archive, links, devices and
encrypted members are not opened but noted.  Only what can be graded, archives
within, and what tells whose it is are kept, in numbered files; a member's name is
never a path on this machine.  The rest appears in the tree with its name, so that a
report can say what came instead.

The cost of a zip's directory and of a tar's headers is bounded as well:
:class:`BoundedStream` refuses a large read while they are being parsed.  An archive
inside an archive of a student is never opened (see :mod:`grader.classroom.arrivals`),
so one that holds itself a billion times costs one level.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, TypeAlias

from grader.classroom.names import raw, shown
from grader.errors import code_kind
from grader.submission.source_files import LARGEST_NOTEBOOK, read_source
from headcount.core.errors import UnreadableFile

__all__ = [
    "ARCHIVES",
    "ArchiveTooLarge",
    "BoundedStream",
    "Bounds",
    "CLASS",
    "DiskFolder",
    "ExtractionDir",
    "File",
    "Folder",
    "METADATA",
    "MemoryFolder",
    "ArchiveUsage",
    "Node",
    "STUDENT",
    "UnopenedEntry",
    "describe",
    "is_archive",
    "is_code",
    "is_junk",
    "open_file",
    "read_whole",
    "stem",
    "unpack",
    "unpacked_stream",
]


# Folders and files. ---------------------------------------------------------------

#: Endings of archives that may hold files that can be graded.
ARCHIVES = (
    *(b".tar" + packed for packed in (b".gz", b".bz2", b".xz")),
    *(b".zip", b".tar", b".tgz", b".tbz2", b".txz"),
)

#: Entries that a folder may have; a larger one is not listed.
WIDEST = 20_000

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
    """An entry that is not opened; ``reason`` completes "<name> is …"."""

    name: bytes
    reason: str


class Folder(Protocol):
    """A folder, which is listed on demand."""

    @property
    def name(self) -> bytes:
        """Its own name."""

    def children(self) -> list[Node]:
        """Return its entries in the order of the names' bytes.

        Raises:
            UnreadableFile: it cannot be listed.
        """


Node: TypeAlias = "File | Folder | UnopenedEntry"


@dataclass
class MemoryFolder:
    """A folder from an archive."""

    name: bytes
    nodes: dict[bytes, Node] = field(default_factory=dict)

    def children(self) -> list[Node]:
        """Return its entries, see :class:`Folder`."""
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
        """Return its entries, see :class:`Folder`."""
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
    """Return a descriptor of a folder beneath another; no part of the path may be a link."""
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
    """Open a regular file that the grader's user named.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    return _regular(os.fsencode(path), None)


def read_whole(node: File, label: str, observe: Callable[[bytes], object] | None = None) -> bytes:
    """Return what a file says, see :func:`grader.submission.source_files.read_source`.

    Args:
        node: the file.
        label: its path, for people; its ending says whether it is a notebook.
        observe: a function that is called with every piece of the file, as it is.

    Raises:
        UnreadableFile: it cannot be read, or has grown too large.
    """
    try:
        with node.open() as stream:
            return read_source(stream, label, observe)
    except OSError as error:
        raise UnreadableFile(f"{label} cannot be read: {error.strerror}") from None


def is_junk(name: bytes) -> bool:
    """Return whether programs leave files of this name behind, as caches and the like."""
    return name.lower() in _JUNK or name.startswith(b"._")


def is_code(name: bytes) -> bool:
    """Return whether a name is that of a Python file or a notebook."""
    return bool(code_kind(name.decode("latin-1"))[1])


def is_archive(name: bytes) -> bool:
    """Return whether a name is that of an archive that can be opened."""
    return name.lower().endswith(ARCHIVES)


def stem(name: bytes) -> bytes:
    """Return a file's name without the ending that tells its kind."""
    ending = next((e for e in ARCHIVES if name.lower().endswith(e)), b"")
    # every byte is a character of its own
    return code_kind(name[: len(name) - len(ending)].decode("latin-1"))[0].encode("latin-1") or name


def describe(path: tuple[bytes, ...]) -> str:
    """Return a path within a submission as text for people."""
    return "/".join(shown(part).replace("/", "\\x2f") for part in path)


# The bounds of an archive, and a private folder for what comes out of it. ---------
#
# Files are stored under numbers, never under names that a student chose.

_MB = 1 << 20


class ArchiveTooLarge(Exception):
    """An archive goes beyond a bound; the message completes "<name> …"."""


@dataclass(frozen=True)
class Bounds:
    """The resources that an archive may use, or all archives of a student together.

    Attributes:
        members: number of members.
        unpacked: bytes that may be unpacked while it is read, kept or not.
        kept: bytes of all files that are kept.
        file: bytes of one file.
        directory: bytes of the archive's directory (a zip's central directory).
        ratio: largest ratio of unpacked to packed bytes, once past ``slack``.
        slack: bytes that may be unpacked at any ratio.
    """

    members: int
    unpacked: int
    kept: int
    file: int
    directory: int
    ratio: int = 250
    slack: int = 8 * _MB


#: A student's own archive.  A solved notebook of the course has about 1 MB; outputs may have more.
STUDENT = Bounds(20_000, 4 * LARGEST_NOTEBOOK, 2 * LARGEST_NOTEBOOK, LARGEST_NOTEBOOK, 8 * _MB)

#: The download of a whole class; students' own archives are files in it.  Its
#: ratio is generous: one student's zeros must not cost the others their grades.
CLASS = Bounds(500_000, 32 << 30, 8 << 30, 2 * LARGEST_NOTEBOOK, 128 * _MB, ratio=20_000)


class ArchiveUsage:
    """Counts the members and bytes of all archives that share some bounds.

    Args:
        bounds: the limits on what it counts.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._members = self._unpacked = self._delivered = self._kept = 0

    def member(self) -> None:
        """Count one more member.

        Raises:
            ArchiveTooLarge: it exceeds the bounds; the other methods raise it as well.
        """
        self._members += 1
        if self._members > self.bounds.members:
            raise ArchiveTooLarge(
                f"has more than {self.bounds.members} members; the rest is not looked at"
            )

    def unpack(self, size: int) -> None:
        """Count bytes that came out of a packed stream."""
        self._unpacked += size
        self._check(self._unpacked)

    def deliver(self, size: int) -> None:
        """Count bytes of members that were read, which may be more than the stream holds."""
        self._delivered += size
        self._check(self._delivered)

    def _check(self, size: int) -> None:
        if size > self.bounds.unpacked:
            raise ArchiveTooLarge(f"unpacks to more than {self.bounds.unpacked >> 20} MB")

    def keep(self, size: int) -> None:
        """Count bytes of files that are kept."""
        self._kept += size
        if self._kept > self.bounds.kept:
            raise ArchiveTooLarge(f"holds more than {self.bounds.kept >> 20} MB of files to grade")


class ExtractionDir:
    """A temporary folder that only this user can enter; it is deleted when closed.

    Args:
        room: bytes of all files that it may hold.
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
        """Write the pieces to a new file, and return its path.

        Raises:
            ArchiveTooLarge: there is no room for them; no part of them is kept.
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
        """Open a stored file."""
        return path.open("rb")


# Bounded streams, which libraries read instead of the archive's file. -------------

_PIECE = 64 << 10

#: Bytes that xz may use: its strongest setting takes about 65 MB to unpack.
_XZ_MEMORY = 128 << 20


class BoundedStream(io.RawIOBase):
    """A stream that limits how much may be read while headers are being parsed.

    Libraries read as much as an archive's headers tell them to; here that
    raises :class:`ArchiveTooLarge` instead.

    Args:
        stream: the file, or a stream that unpacks it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left: int | None = None
        self._what = ""

    @contextlib.contextmanager
    def parsing(self, most: int, what: str) -> Iterator[None]:
        """Let the block read no more than ``most`` bytes in all; ``what`` goes into the error."""
        self._left, self._what = most, what
        try:
            yield
        finally:
            self._left = None

    def read(self, size: int | None = -1) -> bytes:
        """Return bytes of the stream, see :class:`io.RawIOBase`."""
        size = -1 if size is None else size
        if self._left is not None:
            # zipfile looks for the directory in the file's last bytes, read without a size
            data: bytes = b""
            if size <= self._left:
                data = self._stream.read(size if size >= 0 else self._left + 1)
            self._left -= max(size, len(data))
            if self._left < 0:
                raise ArchiveTooLarge(f"has too much in {self._what} to be looked at")
        else:
            data = self._stream.read(size)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset; a stream that is being unpacked goes forward only."""
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        """Return the current offset."""
        return int(self._stream.tell())

    def seekable(self) -> bool:
        """Return true; a stream that is being unpacked goes forward only."""
        return True

    def readable(self) -> bool:
        """Return true."""
        return True


def unpacked_stream(stream: BinaryIO, usage: ArchiveUsage) -> BoundedStream:
    """Return a stream of a tar archive, which is decompressed while it is read."""
    head = stream.read(6)
    stream.seek(0)
    if head.startswith(b"\x1f\x8b"):
        source: Any = gzip.GzipFile(fileobj=stream, mode="rb")
    elif head.startswith(b"BZh"):
        source = _PiecewiseDecompressor(stream, bz2.BZ2Decompressor)
    elif head.startswith(b"\xfd7zXZ"):
        source = _PiecewiseDecompressor(
            stream, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        )
    else:
        return BoundedStream(stream)
    return BoundedStream(_CountingStream(source, stream, usage))


class _PiecewiseDecompressor:
    """Decompresses bz2 or xz piece by piece, in bounded memory.

    ``LZMAFile`` has no limit on memory, and a header may ask for gigabytes.
    """

    def __init__(self, stream: BinaryIO, fresh: Any) -> None:
        self._stream = stream
        self._fresh = fresh
        self._unpacker = fresh()

    def read(self, size: int) -> bytes:
        while True:
            if self._unpacker.eof:
                packed = self._unpacker.unused_data or self._stream.read(_PIECE)
                # archives may be several streams after one another, and end in zeros
                if not packed.strip(b"\0"):
                    return b""
                self._unpacker = self._fresh()
            elif self._unpacker.needs_input:
                packed = self._stream.read(_PIECE)
                if not packed:
                    raise EOFError("it ends too early")
            else:
                packed = b""
            data: bytes = self._unpacker.decompress(packed, size)
            if data:
                return data


class _CountingStream:
    """Counts the bytes that are unpacked, and seeks forward by reading."""

    def __init__(self, source: Any, packed: BinaryIO, usage: ArchiveUsage) -> None:
        self._source = source
        self._packed = packed
        self._usage = usage
        self._at = 0

    def read(self, size: int) -> bytes:
        pieces = []
        while size > 0:
            piece = self._source.read(min(size, _PIECE))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
            self._at += len(piece)
            self._check(len(piece))
        return b"".join(pieces)

    def _check(self, size: int) -> None:
        self._usage.unpack(size)
        bounds = self._usage.bounds
        if self._at > max(bounds.slack, bounds.ratio * self._packed.tell()):
            raise ArchiveTooLarge(f"is packed more than {bounds.ratio} times, like a zip bomb")

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._at:
            raise OSError("the archive asks to go back")
        while self._at < offset and self.read(min(offset - self._at, _PIECE)):
            pass
        return self._at

    def tell(self) -> int:
        return self._at


# Archives. ------------------------------------------------------------------------

#: The file in Gradescope's export that names the students.
METADATA = b"submission_metadata.yml"

#: The end of a receipt's name in a download of Blackboard.
_RECEIPT = re.compile(rb"_attempt_\d{4}(?:-\d\d){5}\.txt\Z")

#: Folders within folders.
DEEPEST = 32

_CHUNK = 64 << 10

#: Bytes of headers before one member of a tar: real ones take a few kilobytes.
_HEADER = 1 << 20

#: Compression methods of zip that can be unpacked piece by piece.
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


def unpack(
    stream: BinaryIO, name: bytes, extraction_dir: ExtractionDir, usage: ArchiveUsage
) -> tuple[MemoryFolder, tuple[str, ...]]:
    """Return the tree in an archive, and the problems of the archive itself.

    Args:
        stream: the archive; it can seek.
        name: the archive's name, which the tree's root gets.
        extraction_dir: the folder that keeps its files.
        usage: counts what it uses, and knows the bounds.
    """
    unpacking = _Unpacking(MemoryFolder(name), extraction_dir, usage)
    try:
        head = stream.read(8)
        stream.seek(0)
        if head.startswith((b"Rar!", b"7z\xbc\xaf")):
            unpacking.problems.append("is a RAR or 7z archive; a .zip is needed")
        elif head.startswith(b"PK"):
            unpacking.zip(stream)
        else:
            unpacking.tar(unpacked_stream(stream, usage))
    except ArchiveTooLarge as error:
        unpacking.problems.append(str(error))
    except RecursionError:
        unpacking.problems.append("cannot be read: it is nested too deeply")
    except Exception as error:  # the libraries raise all kinds over hostile bytes
        detail = shown(raw(str(error))) or type(error).__name__
        unpacking.problems.append(f"cannot be read as a zip or tar archive: {detail}")
    return unpacking.root, tuple(dict.fromkeys(unpacking.problems))


class _Unpacking:
    def __init__(
        self, root: MemoryFolder, extraction_dir: ExtractionDir, usage: ArchiveUsage
    ) -> None:
        self.root = root
        self.extraction_dir = extraction_dir
        self.usage = usage
        self.bounds = usage.bounds
        self.problems: list[str] = []

    def zip(self, stream: BinaryIO) -> None:
        guard = BoundedStream(stream)
        with guard.parsing(self.bounds.directory, "its directory"):
            archive = zipfile.ZipFile(guard)
        with archive:
            for info in archive.infolist():
                self.usage.member()
                path = self._path(_zip_name(info), b"\\")
                if path is None:
                    continue
                kind = stat.S_IFMT(info.external_attr >> 16)
                if info.filename.endswith(("/", "\\")):
                    self._folder(path)
                elif stat.S_ISLNK(kind):
                    self._odd(path, "a symbolic link, which is not followed")
                elif kind not in (0, stat.S_IFREG):
                    self._odd(path, "no regular file, and is not opened")
                elif info.flag_bits & 0x1:
                    self._odd(path, "encrypted; hand it in without a password")
                elif info.compress_type not in _METHODS and _wanted(path):
                    self._odd(path, "packed in a rare way; pack it again as a plain .zip")
                else:
                    self._zip_member(archive, info, path)

    def _zip_member(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: tuple[bytes, ...]
    ) -> None:
        if not _wanted(path):
            self._place(path, File(path[-1], info.file_size, io.BytesIO))
            return
        try:
            with archive.open(info) as member:
                self._keep(path, self._pieces(member, max(info.compress_size, 1)))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            self._odd(path, f"damaged: {shown(raw(str(error)))}")

    def tar(self, stream: BoundedStream) -> None:
        with stream.parsing(_HEADER, "its headers"):
            archive = tarfile.TarFile(fileobj=stream, mode="r", errors="surrogateescape")
        while True:
            with stream.parsing(_HEADER, "its headers"):
                info = archive.next()
            if info is None:
                return
            archive.members = []  # type: ignore[attr-defined]  # or it remembers all of them
            self.usage.member()
            path = self._path(raw(info.name), b"")
            if path is None or info.isdir():
                if path is not None:
                    self._folder(path)
            elif info.issym() or info.islnk():
                self._odd(path, "a link, which is not followed")
            elif not info.isreg():
                self._odd(path, "no regular file, and is not opened")
            elif not _wanted(path):
                self._place(path, File(path[-1], info.size, io.BytesIO))
            else:
                member = archive.extractfile(info)
                if member is not None:
                    self._keep(path, self._pieces(member, None))

    def _pieces(self, member: object, packed: int | None) -> Iterator[bytes]:
        """Yield the contents of a member, and raise where it exceeds a bound."""
        size = 0
        while piece := member.read(_CHUNK):  # type: ignore[attr-defined]
            size += len(piece)
            self.usage.deliver(len(piece))
            if size > self.bounds.file:
                raise _MemberTooLarge(f"larger than {self.bounds.file >> 20} MB")
            if packed and size > max(self.bounds.slack, self.bounds.ratio * packed):
                raise _MemberTooLarge(
                    f"packed more than {self.bounds.ratio} times, like a zip bomb"
                )
            yield piece

    def _keep(self, path: tuple[bytes, ...], pieces: Iterator[bytes]) -> None:
        try:
            stored = self.extraction_dir.store(pieces)
        except _MemberTooLarge as error:
            self._odd(path, str(error))
            return
        size = stored.stat().st_size
        self.usage.keep(size)
        self._place(path, File(path[-1], size, lambda: self.extraction_dir.reader(stored)))

    def _path(self, name: bytes, other_slash: bytes) -> tuple[bytes, ...] | None:
        """Return the parts of a member's name, or None if the member is left out."""
        if other_slash:  # of a zip made by old programs on Windows
            name = name.replace(other_slash, b"/")
        parts = tuple(part for part in name.split(b"/") if part not in (b"", b"."))
        drive = len(name) > 1 and name[1:2] == b":" and name[:1].isalpha()
        if name.startswith(b"/") or drive or b".." in parts or b"\0" in name:
            self.problems.append(f"has a member that leads out of it: {shown(name)}")
            return None
        if not parts or any(map(is_junk, parts)):
            return None
        if len(parts) > DEEPEST:
            self.problems.append(f"has folders more than {DEEPEST} deep; they are not opened")
            return None
        return parts

    def _folder(self, path: tuple[bytes, ...]) -> MemoryFolder | None:
        folder = self.root
        for part in path:
            below = folder.nodes.setdefault(part, MemoryFolder(part))
            if not isinstance(below, MemoryFolder):
                self.problems.append(f"has {describe(path)} in a file as in a folder")
                return None
            folder = below
        return folder

    def _place(self, path: tuple[bytes, ...], node: File | UnopenedEntry) -> None:
        folder = self._folder(path[:-1])
        if folder is None:
            return
        before = folder.nodes.get(path[-1])
        if isinstance(before, MemoryFolder):
            self.problems.append(f"has {describe(path)} as a folder and as a file")
            return
        if before is not None and _wanted(path):
            self.problems.append(f"has {describe(path)} more than once; the last one counts")
        folder.nodes[path[-1]] = node

    def _odd(self, path: tuple[bytes, ...], reason: str) -> None:
        self._place(path, UnopenedEntry(path[-1], reason))


class _MemberTooLarge(Exception):
    """One member exceeds a bound; the rest of the archive is still read."""


def _wanted(path: tuple[bytes, ...]) -> bool:
    name = path[-1]
    if is_code(name) or is_archive(name) or name == METADATA:
        return True
    return _RECEIPT.search(name) is not None


def _zip_name(info: zipfile.ZipInfo) -> bytes:
    """Return a member's name: its bytes where they are UTF-8, flagged so or not, else cp437."""
    name = info.orig_filename
    if not info.flag_bits & 0x800:
        try:
            old = name.encode("cp437")
            old.decode("utf-8")
        except UnicodeError:
            pass
        else:
            return old
    return raw(name)
