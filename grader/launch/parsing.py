"""Reading a stranger's file where strangers' code runs.

Python's own parser has crashed on hostile source before, and notebooks are
JSON as deep as somebody cared to make it.  So the file's bytes go to a process
like a rank's, and data come back: names, faults, texts, and the compiled
definitions as bytes that only a rank will load.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from grader.core.errors import UnreadableFile
from grader.core.framing import BrokenFrame, FrameReader, FrameWriter
from grader.core.program import Program
from grader.core.reading import LARGEST
from grader.core.resource_limits import DEFAULTS
from grader.core.wire import Parse, Parsed
from grader.launch.process_group_handle import Launcher, ProcessGroupHandle
from grader.submission.definitions import Broken
from grader.submission.submission import Submission

__all__ = ["parse"]

#: Seconds that a file may take: the longest solved notebook takes a tenth of one.
SECONDS = DEFAULTS.parsing

#: Bytes that may come back for a file: its text, its code, its names.
_GROWTH, _FLOOR = 8, 1 << 20


def parse(
    launcher: Launcher, data: bytes, label: str, wanted: Iterable[str], seconds: float = SECONDS
) -> Submission:
    """A file's definitions, read in a process of the launcher's.

    Args:
        launcher: starts the process.
        data: the contents of the file.
        label: its path, which says by its ending what it is.
        wanted: see :func:`grader.submission.definitions.select`.
        seconds: after which it has failed.

    Raises:
        UnreadableFile: it is no Python and no notebook, or cannot be read
            within the limits.
        WorldError: the process cannot be started.
    """
    if len(data) > LARGEST:
        raise UnreadableFile(f"{label} is larger than {LARGEST >> 20} MB")
    handle = launcher.launch(1)
    try:
        parsed = _ask(handle, Parse(data, label, list(wanted), launcher.setting.sealed), seconds)
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
    """The answer to a request; nothing if the process died over it."""
    control = handle.controls[0]
    until = time.monotonic() + seconds
    control.settimeout(seconds)
    reader = FrameReader(_GROWTH * len(request.data) + _FLOOR)
    # one that has died does not hear, and the answer will be missing
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
