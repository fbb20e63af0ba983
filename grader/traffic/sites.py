"""Which line of the student's source is running now."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from pathlib import Path
from types import FrameType, TracebackType

import torch

__all__ = ["is_students", "line_here", "lines_of"]


def _library_roots() -> tuple[str, ...]:
    roots = {Path(torch.__file__).parent, Path(__file__).parent.parent}
    paths = sysconfig.get_paths()
    roots.update(Path(paths[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib"))
    every = {str(root) for root in roots} | {str(root.resolve()) for root in roots}
    return tuple(root + os.sep for root in every)


_LIBRARIES = _library_roots()


@functools.lru_cache(maxsize=4096)
def is_students(filename: str) -> bool:
    """Whether code of this file name is the student's: no library's, none of ours."""
    return not filename.startswith(("<frozen ", "<__array", *_LIBRARIES))


def line_here() -> tuple[str, int]:
    """File and line of the innermost frame of the student's; ``("", 0)`` if none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_students(filename):
            return filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


def lines_of(traceback: TracebackType | None) -> list[tuple[str, int, str]]:
    """The student's part of a traceback: file, line and function, outermost first."""
    found = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_students(code.co_filename):
            found.append((code.co_filename, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return found
