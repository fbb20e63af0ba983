"""Marks the functions that run, in this process and in those that it forks or starts.

Most of what is tested runs in ranks: forks of a server, which are killed when they are no longer
needed.  What they ran would be lost if they wrote it at their end, as tools for coverage do.  So
every process has the same file in its memory, and a function that begins sets a byte of it.
In a sandbox there is no such file; what is recorded comes from tests that do without one.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

__all__ = ["FOLDERS", "MARKS", "SIZE", "number", "start"]

#: The environment variable that holds the path of the file.
MARKS = "GATHER_ROUND_MARKS"

#: Bytes of the file.  Of 10,000 functions some fifty share theirs with another one.
SIZE = 1 << 20

_ROOT = str(Path(__file__).resolve().parent.parent.parent) + os.sep

#: Where the functions are that are marked.
FOLDERS = ("grader/", "headcount/", "tests/", "tools/", "benchmarks/")


def number(
    path: str, name: str, checksum: Callable[[bytes], int] = zlib.crc32, size: int = SIZE
) -> int:
    """Return the byte of a function: of all that bear this name in a file of the repository.

    It needs no names of this module: when an interpreter ends, these are gone before its last
    functions have run.
    """
    return checksum(f"{path}:{name}".encode()) % (size - 1) + 1


def start() -> mmap.mmap | None:
    """Mark what runs from now on, in all threads, if the environment names a file that is there."""
    try:
        with open(os.environ.get(MARKS, ""), "r+b") as file:
            marks = mmap.mmap(file.fileno(), SIZE)
    except OSError:
        return None
    # by identity, since two codes may be equal; a code that is kept keeps its identity
    numbers: dict[int, int] = {}
    kept: list[CodeType] = []
    root, folders, number_of = _ROOT, FOLDERS, number  # see `number`

    def mark(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            code = frame.f_code
            found = numbers.get(id(code))
            if found is None:
                path = code.co_filename[len(root) :] if code.co_filename.startswith(root) else ""
                found = number_of(path, code.co_name) if path.startswith(folders) else 0
                kept.append(code)
                numbers[id(code)] = found
            marks[found] = 1

    threading.setprofile(mark)
    sys.setprofile(mark)
    return marks
