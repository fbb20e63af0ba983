"""The bytes of a submitted file, as far as they say what was written.

Two things make files large or unreadable that say nothing about the answer.  A notebook holds the
outputs of its cells: a plot in each of a hundred cells, or the print of a long loop, is many
megabytes.  :class:`OutputFilter` leaves them out while the file streams by, and makes no object
of them.  And some editors and shells, PowerShell's ``>`` among them, write UTF-16, which says so
in its first two bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from grader.errors import code_kind
from headcount.core.errors import UnreadableFile
from headcount.core.files import LARGEST_FILE, contents

__all__ = ["LARGEST_NOTEBOOK", "OutputFilter", "read_source", "source_contents"]

#: Largest size in bytes of a notebook with its outputs.
LARGEST_NOTEBOOK = 256 << 20

#: Bytes that are read at a time.
_PIECE = 1 << 20

#: What a notebook holds that is no source, by its key in the notebook and in each cell.
_NO_SOURCE = frozenset({b"outputs", b"attachments", b"metadata"})

#: Bytes of a string that is compared with those keys.
_LONGEST_KEY = 16

#: Depths of the objects that have these keys: the notebook, and a cell of its list of cells.
_NOTEBOOK, _CELL = 1, 3

_STRUCTURE = re.compile(rb'["{}\[\],:]|\\["\\]')

#: Tokens of a value to leave out that are looked at one by one, and of a whole notebook.
_SINGLY, _MOST_TOKENS = 32, 1 << 19

#: Bytes of such a value that are looked at together: at first, and at most.
_FEW, _BLOCK = 1 << 10, 1 << 16

#: By how much a byte changes the depth.
_STEPS = bytes({123: 1, 91: 1, 125: 255, 93: 255}.get(byte, 0) for byte in range(256))

#: The byte order marks of UTF-16 and UTF-32, the longer ones first.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def source_contents(path: Path) -> bytes:
    """Return what a ``.py`` file or a notebook says that the user named.

    Raises:
        UnreadableFile: as of :func:`headcount.core.files.contents`.
    """

    def read(path: Path) -> bytes:
        with path.open("rb") as stream:
            return read_source(stream, str(path))

    return contents(path, largest=LARGEST_NOTEBOOK, read=read)


def read_source(
    stream: BinaryIO, label: str, observe: Callable[[bytes], object] | None = None
) -> bytes:
    """Return what a submitted file says, in UTF-8; of a notebook all but outputs and metadata.

    Args:
        stream: the file.
        label: its path, whose ending says whether it is a notebook.
        observe: a function that is called with every piece of the file, as it is.

    Raises:
        UnreadableFile: it is too large.
        OSError: it cannot be read.
    """
    is_notebook = code_kind(label)[1] == ".ipynb"
    most = LARGEST_NOTEBOOK if is_notebook else LARGEST_FILE
    decoder: codecs.IncrementalDecoder | None = None
    outputs = OutputFilter() if is_notebook else None
    kept: list[bytes] = []
    size = kept_size = 0
    while piece := stream.read(_PIECE):
        if observe is not None:
            observe(piece)
        if not size:
            encoding = next((name for mark, name in _MARKS if piece.startswith(mark)), None)
            decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
        size += len(piece)
        if size > most:
            raise UnreadableFile(f"{label} is larger than {most >> 20} MB")
        if decoder is not None:
            piece = decoder.decode(piece).encode("utf-8", "surrogatepass")
        if outputs is not None:
            piece = outputs.feed(piece)
            if outputs.tokens > _MOST_TOKENS:
                raise UnreadableFile(f"{label} has more than {_MOST_TOKENS:,} strings and brackets")
        kept.append(piece)
        kept_size += len(piece)
        if kept_size > LARGEST_FILE:
            without = ", without its outputs," if is_notebook else ""
            raise UnreadableFile(f"{label}{without} is larger than {LARGEST_FILE >> 20} MB")
    if decoder is not None:
        rest = decoder.decode(b"", True).encode("utf-8", "surrogatepass")
        kept.append(outputs.feed(rest) if outputs is not None else rest)
    if outputs is not None:
        kept.append(outputs.close())
    return b"".join(kept)


class OutputFilter:
    """Copies a notebook's JSON piece by piece, with ``null`` for its outputs and metadata.

    It knows as much of JSON as it takes to find where a value ends: strings, and brackets.  What
    is no JSON stays as far as it can, so that a parser says what is wrong with it.  It keeps
    nothing of what it leaves out, whatever the nesting, and goes through long values as arrays:
    a loop over what a small archive unpacks to would hold up a class.

    Attributes:
        tokens: how many it has looked at one by one.
    """

    def __init__(self) -> None:
        self.tokens = 0
        self._held = b""
        self._depth = 0
        #: the brackets that are open, as far as a cell's
        self._open: list[bytes] = []
        self._in_string = False
        #: the beginning of the last string, which may be a key
        self._string = b""
        #: the depth of the object whose value is being left out, 0 if none is; the first token
        self._object = self._first = 0

    def feed(self, piece: bytes) -> bytes:
        """Return what is to be kept of the next piece."""
        data = self._held + piece
        # half an escape waits for the other half
        whole = len(data) - (len(data) - len(data.rstrip(b"\\"))) % 2
        data, self._held = data[:whole], data[whole:]
        kept: list[bytes] = []
        start = at = 0  # kept up to `start`, looked at up to `at`
        while self.tokens <= _MOST_TOKENS:
            self.tokens += 1
            if self._object and self.tokens > self._first + _SINGLY:
                at = self._skip(data, at)
            if self._in_string:
                end = self._end_of_string(data, at)
                if len(self._string) < _LONGEST_KEY:
                    self._string += data[at : min(end, at + _LONGEST_KEY)]
                if end == len(data):
                    break
                self._in_string = False
                at = end + 1
                continue
            found = _STRUCTURE.search(data, at)
            if found is None:
                break
            token, place = found[0], found.start()
            at = found.end()
            if token == b'"':
                self._in_string, self._string = True, b""
            elif token in b"{[":
                self._depth += 1
                if self._depth <= _CELL:
                    self._open.append(token)
            elif token in b"}]":
                if self._object and self._depth == self._object:
                    start = self._resume(place)
                self._depth = max(self._depth - 1, 0)
                del self._open[self._depth :]
            elif token == b"," and self._object and self._depth == self._object:
                start = self._resume(place)
            elif token == b":" and not self._object and self._starts_value_to_leave_out():
                self._object, self._first = self._depth, self.tokens
                kept += (data[start:at], b"null")
        if not self._object:
            kept.append(data[start:])
        return b"".join(kept)

    def close(self) -> bytes:
        """Return what was held back at the end of the last piece."""
        return b"" if self._object else self._held

    def _resume(self, place: int) -> int:
        """End the value that is left out; what follows it is kept again."""
        self._object, self._string = 0, b""
        del self._open[self._depth :]
        return place

    def _starts_value_to_leave_out(self) -> bool:
        at_key = (
            self._depth in (_NOTEBOOK, _CELL) and self._open == [b"{", b"[", b"{"][: self._depth]
        )
        return at_key and self._string in _NO_SOURCE

    def _end_of_string(self, data: bytes, at: int) -> int:
        """Return the index of the quote that ends a string, or of the data's end."""
        end, size = data.find(b'"', at), 64
        if end < 0 or data[end - 1] != ord("\\"):
            return len(data) if end < 0 else end
        while at < len(data):
            block = _without_escapes(data[at : at + size])
            end = block.find(b'"')
            if end >= 0:
                return at + end
            at, size = at + len(block), min(2 * size, _BLOCK)
        return at

    def _skip(self, data: bytes, at: int) -> int:
        """Return the index of the token that ends the value left out, or of the data's end."""
        import numpy as np

        size = _FEW
        while at < len(data):
            if self._in_string:  # a picture is long
                at = self._end_of_string(data, at)
            block = _without_escapes(data[at : at + size])
            codes = np.frombuffer(block, np.uint8)
            outside = (np.cumsum(codes == ord('"'), dtype=np.uint8) & 1) == self._in_string
            steps = np.frombuffer(block.translate(_STEPS), np.int8) * outside
            depths = np.cumsum(steps, dtype=np.int32) + self._depth
            ends = depths < self._object
            ends |= (codes == ord(",")) & outside & (depths == self._object)
            if ends.any():
                self._depth, self._in_string = self._object, False
                return at + int(ends.argmax())
            if block:
                self._depth, self._in_string = int(depths[-1]), not outside[-1]
            at, size = at + len(block), min(2 * size, _BLOCK)
        return at


def _without_escapes(block: bytes) -> bytes:
    """Return text with other bytes for its escapes, and without half of one at its end."""
    plain = block.replace(rb"\\", b"__").replace(rb"\"", b"__")
    return plain[:-1] if plain.endswith(b"\\") else plain
