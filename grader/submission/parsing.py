"""Parsing of a submitted file in a process of its own, from which only data come back.

:func:`parsed` is what runs there, as a task of :class:`headcount.core.wire.Perform`.  In a sandbox
nothing else of the grader is to be seen there.
"""

from __future__ import annotations

import msgspec

from grader.submission.definitions import Broken
from grader.submission.modules import ReceivedFiles
from grader.submission.outline import Outline
from grader.submission.submission import Submission, prints_of
from headcount.core.errors import UnreadableFile

__all__ = ["MEMORY", "TASK", "FileDefinitions", "FileRequest", "parsed"]

#: The task, as the process is asked for it, and the bytes that the process may allocate.
TASK, MEMORY = "grader.submission.parsing:parsed", 1 << 30


class FileRequest(msgspec.Struct, frozen=True):
    """A file that is to be read.

    Attributes:
        data: the contents of the file.
        label: its path.
        wanted: names to keep however they are defined.
        beside: the contents of the Python files of the same submission that it may import, by
            their paths from its folder.
    """

    data: bytes
    label: str
    wanted: list[str]
    beside: dict[str, bytes] = {}


class FileDefinitions(msgspec.Struct, array_like=True, frozen=True):
    """The definitions of a file; the fields are those of a ``Submission``.

    Attributes:
        program: the packed :class:`headcount.core.program.Program`.
        names, sources: as of a ``Submission``.
        broken, unparsed: the same, where a fault is a label, a line and a message.
        prints: fingerprints of the wanted functions, see
            :func:`grader.submission.submission.fingerprints`.
        outlines: outlines of the wanted functions, see :mod:`grader.submission.outline`.
        elsewhere: as of a ``Submission``.
        error: why the file is no submission at all; empty if it is one.
    """

    program: bytes
    names: list[str]
    broken: dict[str, tuple[str, int, str]]
    unparsed: list[tuple[str, int, str]]
    sources: dict[str, str]
    prints: dict[str, list[int]] = {}
    outlines: dict[str, list[Outline]] = {}
    elsewhere: dict[str, str] = {}
    error: str = ""


def parsed(data: bytes) -> bytes:
    """Return the packed :class:`FileDefinitions` of a packed :class:`FileRequest`."""
    request = msgspec.msgpack.decode(data, type=FileRequest)
    return msgspec.msgpack.encode(_definitions(request))


def _definitions(request: FileRequest) -> FileDefinitions:
    try:
        found = Submission.from_bytes(
            request.data, request.label, request.wanted, ReceivedFiles(request.beside)
        )
    except UnreadableFile as error:
        return FileDefinitions(b"", [], {}, [], {}, error=_plain(str(error)))
    return FileDefinitions(
        found.program.to_bytes(),
        sorted(map(_plain, found.names)),
        {_plain(name): _row(fault) for name, fault in found.broken.items()},
        [_row(fault) for fault in found.unparsed],
        {_plain(label): _plain(text) for label, text in found.sources.items()},
        prints_of(found.sources.values(), request.wanted),
        found.outlines,
        elsewhere={name: _plain(text)[:500] for name, text in found.elsewhere.items()},
    )


def _plain(text: str) -> str:
    # a string literal may hold a lone surrogate, which has no UTF-8
    return text.encode("utf-8", "replace").decode()


def _row(fault: Broken) -> tuple[str, int, str]:
    return _plain(fault.label), fault.line, _plain(fault.message)[:500]
