"""How messages between the judge and a rank are framed.

A frame is four bytes of length, little-endian, and a msgpack body.  Bodies
decode into the structs of :mod:`grader.core.wire` or not at all.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator

import msgspec

from grader.core.verdict import Diagnosis
from grader.core.wire import FromRank, ToRank

__all__ = ["BrokenFrame", "FrameReader", "FrameWriter", "Refused", "TooManyMessages", "read_frames"]


# What can go wrong between the judge and a rank, for use inside this package. -----


class BrokenFrame(Exception):
    """Bytes from a rank that no program of ours sends; someone wrote into the pipe."""


class Refused(BrokenFrame):
    """What an honest rank may say, and the judge does not take.

    Args:
        what: reads after "rank 2".
        diagnosis: the word for it.
    """

    def __init__(self, what: str, diagnosis: Diagnosis) -> None:
        super().__init__(what)
        self.diagnosis = diagnosis


class TooManyMessages(Refused):
    """More operations, or news of them, than the judge will remember."""

    def __init__(self, what: str) -> None:
        super().__init__(what, Diagnosis.TOO_MANY_MESSAGES)


# Frames. --------------------------------------------------------------------------

_HEADER = struct.Struct("<I")

#: No frame from a rank is longer: an answer, and nothing else, comes near.
LONGEST = 1 << 30

#: Bytes of frames that may wait for company.
_COMPANY = 1 << 20

_from_rank = msgspec.msgpack.Decoder(FromRank)
_to_rank = msgspec.msgpack.Decoder(ToRank)
_encode = msgspec.msgpack.Encoder().encode


class FrameWriter:
    """Writes frames to a socket from any thread; small ones may wait for company."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._pending = bytearray()
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def write(self, message: msgspec.Struct, flush: bool = True) -> None:
        """Frame a message; with ``flush``, it has left when this returns.

        Raises:
            RuntimeError: this is a child of the process that speaks here.
        """
        if os.getpid() != self._owner:
            raise RuntimeError(
                "this process was forked by a rank and is none itself: it cannot communicate,"
                " nor return for it"
            )
        body = _encode(message)
        with self._lock:
            self._pending += _HEADER.pack(len(body))
            self._pending += body
            if flush or len(self._pending) > _COMPANY:
                self._sock.sendall(self._pending)
                self._pending.clear()


class FrameReader:
    """Cuts a rank's stream of bytes into messages, whatever the chunks.

    Args:
        longest: bytes of the longest frame that is believed.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self.longest = longest
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[FromRank]:
        """The messages that are complete once ``data`` has come.

        Raises:
            BrokenFrame: a frame is too long, or no message of ours.
        """
        self._buffer += data
        start = 0
        try:
            while len(self._buffer) - start >= _HEADER.size:
                (length,) = _HEADER.unpack_from(self._buffer, start)
                if length > self.longest:
                    raise BrokenFrame(f"a frame of {length} bytes")
                end = start + _HEADER.size + length
                if len(self._buffer) < end:
                    break
                body = bytes(memoryview(self._buffer)[start + _HEADER.size : end])
                start = end
                try:
                    yield _from_rank.decode(body)
                except msgspec.MsgspecError as error:
                    raise BrokenFrame(f"a frame that is no message: {error}") from error
        finally:
            del self._buffer[:start]


def read_frames(sock: socket.socket) -> Iterator[ToRank]:
    """The judge's messages to this rank, until the judge hangs up."""
    stream = sock.makefile("rb")
    while True:
        header = stream.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        yield _to_rank.decode(stream.read(*_HEADER.unpack(header)))
