"""Parsing of a submitted file in a process of its own, where a sandbox runs if there is one.

Python's own parser has crashed on hostile source before, and a notebook is JSON of any depth.
So the file's bytes go to a process like a rank's, and data come back: names, faults, texts, and
the compiled definitions as bytes that only a rank will load.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from grader.core.errors import LARGEST_FILE, UnreadableFile
from grader.core.program import Program
from grader.core.resource_limits import DEFAULTS
from grader.core.wire import BrokenFrame, FrameReader, FrameWriter, Parse, Parsed
from grader.launch.launchers import Launcher, ProcessGroupHandle
from grader.submission.definitions import Broken
from grader.submission.submission import Submission

__all__ = ["parse"]

#: Seconds that a file may take: the longest solved notebook takes 0.1 s.
SECONDS = DEFAULTS.parsing

#: Bytes that may come back: a multiple of the file's (its text, code and names), and a constant.
_GROWTH, _FLOOR = 8, 1 << 20


def parse(
    launcher: Launcher, data: bytes, label: str, wanted: Iterable[str], seconds: float = SECONDS
) -> Submission:
    """Return a file's definitions, read in a process of the launcher's.

    Args:
        launcher: starts the process.
        data: the contents of the file.
        label: its path, whose suffix says whether it is a notebook.
        wanted: names to keep, see :func:`grader.submission.definitions.select`.
        seconds: the time limit of the parsing.

    Raises:
        UnreadableFile: it is no Python and no notebook, or cannot be read
            within the limits.
        WorldError: the process cannot be started.
    """
    if len(data) > LARGEST_FILE:
        raise UnreadableFile(f"{label} is larger than {LARGEST_FILE >> 20} MB")
    handle = launcher.launch(1)
    try:
        parsed = _ask(
            handle, Parse(data, label, list(wanted), launcher.environment.sealed), seconds
        )
    except (BrokenFrame, OSError) as error:
        raise UnreadableFile(f"{label} cannot be read: {error}") from None
    finally:
        handle.close()
        launcher.settle()
    if parsed is None:
        raise UnreadableFile(f"{label} cannot be read: Python's parser gives up on it")
    if parsed.error:
        raise UnreadableFile(parsed.error)
    return Submission(
        label,
        Program(packed=parsed.program),
        frozenset(parsed.names),
        {name: Broken(*fault) for name, fault in parsed.broken.items()},
        tuple(Broken(*fault) for fault in parsed.unparsed),
        dict(parsed.sources),
        dict(parsed.prints),
        dict(parsed.outlines),
    )


def _ask(handle: ProcessGroupHandle, request: Parse, seconds: float) -> Parsed | None:
    """Return the answer to a request, or None if the process died over it."""
    control = handle.controls[0]
    until = time.monotonic() + seconds
    control.settimeout(seconds)
    reader = FrameReader(_GROWTH * len(request.data) + _FLOOR)
    # a process that has died cannot be written to, and its answer will be missing
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        FrameWriter(control).write(request)
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise BrokenFrame(f"it takes over {seconds:.0f} s")
        control.settimeout(left)
        try:
            received = control.recv(1 << 20)
        except TimeoutError:
            continue
        except ConnectionResetError:
            return None
        if not received:
            return None
        for message in reader.feed(received):
            if isinstance(message, Parsed):
                return message
            raise BrokenFrame("what came back is no answer")
