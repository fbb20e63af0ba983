"""Folders, files and archives that come from untrusted people.

A tree has three kinds of node: a :class:`File` that can be read, a folder, and an
:class:`UnopenedEntry`, which stands for anything that will not be opened, with the reason.  On a
disk no symbolic link is ever followed: every part of a path is opened beneath its parent with
``O_NOFOLLOW``, files without blocking, and what has been opened must turn out to be a regular file.

Zip and tar archives become such trees, within bounds.  An archive's own claims
about itself are not believed: bytes are counted as they come out, and unpacking
ends at the bound.  Members that lead out of the archive, links, devices and
encrypted members are not opened but noted.  Only what can be graded, archives
within, and what tells whose it is are kept, in numbered files; a member's name is
never a path on this machine.  The rest appears in the tree with its name, so that a
report can say what came instead.

The cost of a zip's directory and of a tar's headers is bounded as well:
:class:`_BoundedStream` refuses a large read while they are being parsed.  An archive
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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from grader.classroom.names import raw, shown
from grader.errors import code_kind
from grader.submission.source_files import LARGEST_NOTEBOOK, read_source
from headcount.core.errors import UnreadableFile

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


@dataclass
class MemoryFolder:
    """A folder from an archive."""

    name: bytes
    nodes: dict[bytes, Node] = field(default_factory=dict)

    def children(self) -> list[Node]:
        """Return its entries in the order of the names' bytes."""
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
        """Return its entries in the order of the names' bytes.

        Raises:
            UnreadableFile: it cannot be listed.
        """
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


Folder: TypeAlias = MemoryFolder | DiskFolder
Node: TypeAlias = File | MemoryFolder | DiskFolder | UnopenedEntry


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

#: Bytes that are read or unpacked at a time.
_PIECE = 64 << 10

#: Folders within folders.
DEEPEST = 32

#: Bytes of headers before one member of a tar: real ones take a few kilobytes.
_HEADER = _MB

#: Bytes that xz may use: its strongest setting takes about 65 MB to unpack.
_XZ_MEMORY = 128 * _MB


class ArchiveTooLarge(Exception):
    """An archive goes beyond a bound; the message completes "<name> …"."""


class _MemberLost(Exception):
    """One member is damaged or too large; the message completes "<name> is …"."""


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

    def refuse_bomb(self, size: int, packed: int, error: Callable[[str], Exception]) -> None:
        """Raise the error if so many bytes came out of so few."""
        if size > max(self.slack, self.ratio * packed):
            raise error(f"packed more than {self.ratio} times, like a zip bomb")


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
        self._limits = {
            "members": (bounds.members, f"has more than {bounds.members} members; the rest is not"
                        " looked at"),
            # what members hold, which may be more than the stream that they are unpacked from
            "delivered": (bounds.unpacked, f"unpacks to more than {bounds.unpacked >> 20} MB"),
            "unpacked": (bounds.unpacked, f"unpacks to more than {bounds.unpacked >> 20} MB"),
            "kept": (bounds.kept, f"holds more than {bounds.kept >> 20} MB of files to grade"),
        }  # fmt: skip
        self._used: Counter[str] = Counter()

    def count(self, what: str, amount: int = 1) -> None:
        """Count more members, or bytes that were unpacked, delivered or kept.

        Raises:
            ArchiveTooLarge: it exceeds the bounds.
        """
        self._used[what] += amount
        limit, message = self._limits[what]
        if self._used[what] > limit:
            raise ArchiveTooLarge(message)


class ExtractionDir(contextlib.AbstractContextManager["ExtractionDir"]):
    """A temporary folder that only this user can enter; it is deleted when closed.

    Args:
        room: bytes of all files that it may hold.
    """

    def __init__(self, room: int = 8 << 30) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="grader-arrivals-")
        self._room = room
        self._number = 0

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def store(self, pieces: Iterable[bytes]) -> Path:
        """Write the pieces to a new file, and return its path.

        Raises:
            ArchiveTooLarge: there is no room for them; no part of them is kept.
        """
        self._number += 1
        path = Path(self._folder.name, f"{self._number:08d}")
        left = self._room
        try:
            with path.open("xb") as stream:
                for piece in pieces:
                    left -= len(piece)
                    if left < 0:
                        raise ArchiveTooLarge(
                            "does not fit: the whole class has used up the disk's share"
                        )
                    stream.write(piece)
        except BaseException:
            path.unlink()
            raise
        self._room = left
        return path


# What libraries read instead of the archive's file. -------------------------------


class _BoundedStream(io.RawIOBase):
    """A stream that limits how much is unpacked, and how much headers may ask for.

    Args:
        source: the archive's file, or what unpacks it.
        packed: the archive's file if the source unpacks it; then it goes forward only.
        usage: counts what is unpacked.
    """

    def __init__(self, source: Any, packed: BinaryIO | None, usage: ArchiveUsage) -> None:
        self._source = source
        self._packed = packed
        self._usage = usage
        self._at = 0
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
        if self._left is None:
            return self._read(size)
        # zipfile looks for the directory in the file's last bytes, read without a size
        data = self._read(size if size >= 0 else self._left + 1) if size <= self._left else b""
        self._left -= max(size, len(data))
        if self._left < 0:
            raise ArchiveTooLarge(f"has too much in {self._what} to be looked at")
        return data

    def _read(self, size: int) -> bytes:
        if self._packed is None:
            return bytes(self._source.read(size))
        pieces: list[bytes] = []
        while size > 0 and (piece := self._source.read(min(size, _PIECE))):
            pieces.append(piece)
            size -= len(piece)
            self._at += len(piece)
            self._usage.count("unpacked", len(piece))
            self._usage.bounds.refuse_bomb(
                self._at, self._packed.tell(), lambda why: ArchiveTooLarge(f"is {why}")
            )
        return b"".join(pieces)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset; a stream that is being unpacked goes forward only."""
        if self._packed is None:
            return int(self._source.seek(offset, whence))
        if whence != io.SEEK_SET or offset < self._at:
            raise OSError("the archive asks to go back")
        while self._at < offset and self._read(min(offset - self._at, _PIECE)):
            pass
        return self._at

    def tell(self) -> int:
        """Return the current offset."""
        return int(self._source.tell()) if self._packed is None else self._at

    def seekable(self) -> bool:
        """Return true; a stream that is being unpacked goes forward only."""
        return True

    def readable(self) -> bool:
        """Return true."""
        return True


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


# Archives. ------------------------------------------------------------------------

#: The file in Gradescope's export that names the students.
METADATA = b"submission_metadata.yml"

#: The end of a receipt's name in a download of Blackboard.
_RECEIPT = re.compile(rb"_attempt_\d{4}(?:-\d\d){5}\.txt\Z")

#: Compression methods of zip that can be unpacked piece by piece.
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

#: What the libraries raise over a member that is damaged.
_DAMAGE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, ValueError),
)


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
        unpacking.archive(stream)
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

    def archive(self, stream: BinaryIO) -> None:
        """Unpack an archive, whose first bytes tell what it is."""
        head = stream.read(8)
        stream.seek(0)
        source: Any
        if head.startswith((b"Rar!", b"7z\xbc\xaf")):
            self.problems.append("is a RAR or 7z archive; a .zip is needed")
            return
        if head.startswith(b"PK"):
            self._zip(_BoundedStream(stream, None, self.usage))
            return
        if head.startswith(b"\x1f\x8b"):
            source = gzip.GzipFile(fileobj=stream, mode="rb")
        elif head.startswith(b"BZh"):
            source = _PiecewiseDecompressor(stream, bz2.BZ2Decompressor)
        elif head.startswith(b"\xfd7zXZ"):
            source = _PiecewiseDecompressor(
                stream, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
            )
        else:
            source = stream
        packed = None if source is stream else stream
        self._tar(_BoundedStream(source, packed, self.usage))

    def _zip(self, stream: _BoundedStream) -> None:
        with stream.parsing(self.bounds.directory, "its directory"):
            archive = zipfile.ZipFile(stream)
        for info in archive.infolist():
            name, kind = _zip_name(info), stat.S_IFMT(info.external_attr >> 16)
            why = ""
            if stat.S_ISLNK(kind):
                why = "a symbolic link, which is not followed"
            elif kind not in (0, stat.S_IFREG):
                why = "no regular file, and is not opened"
            elif info.flag_bits & 0x1:
                why = "encrypted; hand it in without a password"
            elif info.compress_type not in _METHODS and _is_wanted(name):
                why = "packed in a rare way; pack it again as a plain .zip"
            self._member(
                name,
                info.filename.endswith(("/", "\\")),
                why,
                info.file_size,
                lambda info=info: archive.open(info),  # type: ignore[misc]
                max(info.compress_size, 1),
            )

    def _tar(self, stream: _BoundedStream) -> None:
        with stream.parsing(_HEADER, "its headers"):
            archive = tarfile.TarFile(fileobj=stream, mode="r", errors="surrogateescape")
        while True:
            with stream.parsing(_HEADER, "its headers"):
                info = archive.next()
            if info is None:
                return
            archive.members = []  # type: ignore[attr-defined]  # or it remembers all of them
            why = ""
            if info.issym() or info.islnk():
                why = "a link, which is not followed"
            elif not (info.isreg() or info.isdir()):
                why = "no regular file, and is not opened"
            self._member(
                raw(info.name),
                info.isdir(),
                why,
                info.size,
                lambda info=info: archive.extractfile(info),  # type: ignore[misc]
            )

    def _member(
        self,
        name: bytes,
        is_folder: bool,
        why_not: str,
        size: int,
        opened: Callable[[], Any],
        packed: int | None = None,
    ) -> None:
        """Take a member into the tree; its contents are kept if they are wanted."""
        self.usage.count("members")
        path = self._path(name)
        if path is None:
            return
        # a student who has left nothing else behind has handed in, and is no less a student
        kept = tuple(takewhile(lambda part: not is_junk(part), path))
        if is_folder or not path or kept != path:
            self._folder(kept)
            return
        node: File | UnopenedEntry = File(path[-1], size, io.BytesIO)
        if why_not:
            node = UnopenedEntry(path[-1], why_not)
        elif _is_wanted(name):
            try:
                stored = self.extraction_dir.store(self._pieces(opened, packed))
            except _MemberLost as error:
                node = UnopenedEntry(path[-1], str(error))
            else:
                size = stored.stat().st_size
                self.usage.count("kept", size)
                node = File(path[-1], size, lambda: stored.open("rb"))
        self._place(path, node)

    def _pieces(self, opened: Callable[[], Any], packed: int | None) -> Iterator[bytes]:
        """Yield the contents of a member, and raise where it exceeds a bound."""
        size = 0
        try:
            with opened() as member:
                while piece := member.read(_PIECE):
                    size += len(piece)
                    self.usage.count("delivered", len(piece))
                    if size > self.bounds.file:
                        raise _MemberLost(f"larger than {self.bounds.file >> 20} MB")
                    if packed is not None:
                        self.bounds.refuse_bomb(size, packed, _MemberLost)
                    yield piece
        except _DAMAGE as error:
            raise _MemberLost(f"damaged: {shown(raw(str(error)))}") from None

    def _path(self, name: bytes) -> tuple[bytes, ...] | None:
        """Return the parts of a member's name, or None if the member is left out."""
        parts = tuple(part for part in name.split(b"/") if part not in (b"", b"."))
        drive = len(name) > 1 and name[1:2] == b":" and name[:1].isalpha()
        if name.startswith(b"/") or drive or b".." in parts or b"\0" in name:
            self.problems.append(f"has a member that leads out of it: {shown(name)}")
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
        if before is not None and _is_wanted(path[-1]):
            self.problems.append(f"has {describe(path)} more than once; the last one counts")
        folder.nodes[path[-1]] = node


def _is_wanted(path: bytes) -> bool:
    """Return whether a member's contents are kept: it can be graded, or tells whose work it is."""
    name = path.rpartition(b"/")[2]
    if is_code(name) or is_archive(name) or name in (METADATA, b"timestamp.txt"):
        return True
    return _RECEIPT.search(name) is not None


def _zip_name(info: zipfile.ZipInfo) -> bytes:
    """Return a member's name: its bytes where they are UTF-8, flagged so or not, else cp437."""
    name = raw(info.orig_filename)
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            old = info.orig_filename.encode("cp437")
            old.decode("utf-8")
            name = old
    return name.replace(b"\\", b"/")  # old programs on Windows write backslashes
