"""Streams that count: what an archive's reader gets instead of the file."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
from collections.abc import Iterator
from typing import Any, BinaryIO

from grader.classroom.extraction_dir import Meter, TooMuch

__all__ = ["Guard", "unpacked_stream"]

_CHUNK = 64 << 10

#: Bytes that xz may use: its strongest setting takes about 65 MB to unpack.
_XZ_MEMORY = 128 << 20


class Guard(io.RawIOBase):
    """A stream that refuses to be read too much while it is being parsed.

    Libraries read as much as an archive's headers tell them to; here that
    raises :class:`TooMuch` instead.

    Args:
        stream: the file, or what is unpacked from it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left: int | None = None
        self._what = ""

    @contextlib.contextmanager
    def parsing(self, most: int, what: str) -> Iterator[None]:
        """Within, no more than so many bytes may be read in all."""
        self._left, self._what = most, what
        try:
            yield
        finally:
            self._left = None

    def read(self, size: int | None = -1) -> bytes:
        """Bytes of the stream."""
        size = -1 if size is None else size
        if self._left is not None:
            # a zip's end may be looked for in a last piece of unknown size
            data: bytes = b""
            if size <= self._left:
                data = self._stream.read(size if size >= 0 else self._left + 1)
            self._left -= max(size, len(data))
            if self._left < 0:
                raise TooMuch(f"has too much in {self._what} to be looked at")
        else:
            data = self._stream.read(size)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; forward only where the stream is unpacked on the way."""
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        """The place reached."""
        return int(self._stream.tell())

    def seekable(self) -> bool:
        """It is; in an unpacked stream, forward."""
        return True

    def readable(self) -> bool:
        """It is."""
        return True


def unpacked_stream(stream: BinaryIO, meter: Meter) -> Guard:
    """A tar archive, unpacked on the way if it is packed, within the bounds."""
    head = stream.read(6)
    stream.seek(0)
    if head.startswith(b"\x1f\x8b"):
        source: Any = gzip.GzipFile(fileobj=stream, mode="rb")
    elif head.startswith(b"BZh"):
        source = _Pieces(stream, bz2.BZ2Decompressor)
    elif head.startswith(b"\xfd7zXZ"):
        source = _Pieces(stream, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY))
    else:
        return Guard(stream)
    return Guard(_Forward(source, stream, meter))


class _Pieces:
    """Unpacks bz2 or xz piece by piece, with bounded memory.

    ``LZMAFile`` has no limit on memory, and a header may ask for gigabytes.
    """

    def __init__(self, stream: BinaryIO, fresh: Any) -> None:
        self._stream = stream
        self._fresh = fresh
        self._unpacker = fresh()

    def read(self, size: int) -> bytes:
        while True:
            if self._unpacker.eof:
                packed = self._unpacker.unused_data or self._stream.read(_CHUNK)
                # archives may be several streams after one another, and end in zeros
                if not packed.strip(b"\0"):
                    return b""
                self._unpacker = self._fresh()
            elif self._unpacker.needs_input:
                packed = self._stream.read(_CHUNK)
                if not packed:
                    raise EOFError("it ends too early")
            else:
                packed = b""
            data: bytes = self._unpacker.decompress(packed, size)
            if data:
                return data


class _Forward:
    """What is unpacked, counted, with a seek that goes forward."""

    def __init__(self, source: Any, packed: BinaryIO, meter: Meter) -> None:
        self._source = source
        self._packed = packed
        self._meter = meter
        self._at = 0

    def read(self, size: int) -> bytes:
        pieces = []
        while size > 0:
            piece = self._source.read(min(size, _CHUNK))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
            self._at += len(piece)
            self._check(len(piece))
        return b"".join(pieces)

    def _check(self, size: int) -> None:
        self._meter.unpack(size)
        bounds = self._meter.bounds
        if self._at > max(bounds.slack, bounds.ratio * self._packed.tell()):
            raise TooMuch(f"is packed more than {bounds.ratio} times, like a zip bomb")

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self._at:
            raise OSError("the archive asks to go back")
        while self._at < offset and self.read(min(offset - self._at, _CHUNK)):
            pass
        return self._at

    def tell(self) -> int:
        return self._at
