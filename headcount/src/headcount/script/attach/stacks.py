"""The Python stacks of live processes, by py-spy: which line a rank stands at.

py-spy reads memory as well, and does not stop the process either (``--nonblocking``).  It is an
extra: without it, lines are missing in a report, and the rest is not.
"""

from __future__ import annotations

import linecache
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from headcount.script.attach.readings import StackFrame
from headcount.trace.flight_recorder import is_library

__all__ = ["NoStack", "own_frame", "py_spy", "stack_of", "torch_call", "value_of"]

#: Seconds that py-spy may take, and how often a process that moves is tried again.
_PATIENCE, _TRIES = 10, 3

#: Local variables of torch's functions that say who waits for whom; no others are kept, since a
#: person's variables may hold what is nobody's business.
_VALUES = {
    *("src", "dst", "group_src", "group_dst"),
    *("group_name", "global_ranks_in_group", "i"),
}

#: Torch's module of the collectives, and the one in which autograd's engine is called.
_COLLECTIVES, _BACKWARD = "torch/distributed/distributed_c10d.py", "torch/autograd/graph.py"


class NoStack(Exception):
    """The stack of a process cannot be read; the text says why."""


class _Local(msgspec.Struct):
    name: str
    repr: str | None = None


class _SpiedFrame(msgspec.Struct):
    name: str
    filename: str
    line: int
    locals: list[_Local] | None = None


class _SpiedThread(msgspec.Struct):
    frames: list[_SpiedFrame]
    os_thread_id: int | None = None
    thread_name: str | None = None


#: Made here, and not by the threads that read ranks at the same time: msgspec looks at the types of
#: a class when they are first asked for, and a second thread that asks meanwhile crashes.
_DUMP = msgspec.json.Decoder(list[_SpiedThread])


def py_spy() -> str | None:
    """Return the program: beside this Python, or on the path."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def stack_of(pid: int) -> list[StackFrame]:
    """Return the frames of a process's main thread, innermost first.

    Raises:
        NoStack: they cannot be read.
    """
    program = py_spy()
    if program is None:
        raise NoStack("lines of the program need py-spy: pip install 'headcount[attach]'")
    command = [program, "dump", "--json", "--locals", "--nonblocking", "--pid", str(pid)]
    why = ""
    for _ in range(_TRIES):
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise NoStack(f"py-spy has not ended after {_PATIENCE} s") from None
        except OSError as error:
            raise NoStack(f"{program} cannot be run: {error.strerror}") from None
        if done.returncode == 0:
            try:
                return _frames(_DUMP.decode(done.stdout), pid)
            except msgspec.DecodeError as error:
                why = f"what py-spy prints cannot be read: {error}"
        else:
            said = done.stderr.decode(errors="replace").strip()
            why = f"py-spy says: {said.splitlines()[-1][:200] if said else 'nothing'}"
    raise NoStack(why)


def _frames(threads: Sequence[_SpiedThread], pid: int) -> list[StackFrame]:
    """Return the frames of the main thread, whose number is the process's."""
    main = [one for one in threads if one.os_thread_id == pid]
    main = main or [one for one in threads if one.thread_name == "MainThread"] or [*threads]
    if main and main[0].frames and main[0].frames[0].filename.endswith("/threading.py"):
        # it waits for another thread: for the one that communicates, where there is one
        main = [one for one in threads if one is not main[0] and _communicates(one)][:1] or main
    found = []
    for frame in main[0].frames if main else []:
        torchs = "/torch/" in frame.filename
        values = {
            one.name: one.repr[:1000]
            for one in frame.locals or ()
            if torchs and one.name in _VALUES and one.repr is not None
        }
        own = not is_library(frame.filename)
        text = _line(pid, frame.filename, frame.line) if own else ""
        line = max(frame.line, 0)
        found.append(StackFrame(frame.filename[-1000:], line, frame.name[:200], values, text))
    return found


def _communicates(thread: _SpiedThread) -> bool:
    return any(one.filename.endswith(_COLLECTIVES) for one in thread.frames)


def _line(pid: int, filename: str, line: int) -> str:
    """Return a line of a file as the process sees it, if it is one of Python.

    A process can name any file, and this one may be root's: nothing else is read.
    """
    try:
        path = os.path.realpath(f"/proc/{pid}/root{filename}")
    except OSError:  # it has ended since
        return ""
    if not (filename.startswith("/") and path.endswith(".py")):
        return ""
    return linecache.getline(path, line).strip()[:200]


def own_frame(frames: Sequence[StackFrame] | None) -> StackFrame | None:
    """Return the innermost frame of a person's own files."""
    return next(
        (one for one in frames or () if not is_library(one.file) and not one.file.startswith("<")),
        None,
    )


def torch_call(frames: Sequence[StackFrame] | None) -> StackFrame | None:
    """Return the frame of the call of ``torch.distributed`` that a thread is in.

    It is the outermost of torch's own module of collectives inside the person's innermost line, or
    backward, where DistributedDataParallel waits.
    """
    found = None
    for frame in frames or ():
        if not is_library(frame.file):
            break
        if frame.file.endswith((_COLLECTIVES, _BACKWARD)):
            found = frame
    return found


def in_default_group(frames: Sequence[StackFrame] | None, function: str) -> bool:
    """Return whether one of torch's functions on a stack was called without a group of its own."""
    return any(
        frame.name == function and "/torch/" in frame.file and frame.values.get("group") == "None"
        for frame in frames or ()
    )


def value_of(frames: Sequence[StackFrame] | None, function: str, name: str) -> Any:
    """Return a local variable of one of torch's functions on a stack: a number, a list or a text.

    None if it is not there, or None itself.
    """
    for frame in frames or ():
        if frame.name == function and name in frame.values and "/torch/" in frame.file:
            text = frame.values[name]
            try:
                return msgspec.json.decode(text, type=int | list[int])
            except msgspec.DecodeError:
                return text.strip("'\"") if text != "None" else None
    return None
