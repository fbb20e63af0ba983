"""Memory in large pages, so that a process with torch in it forks in half the time.

A fork copies the table of pages, and the end of a child tears it down; torch
and its Python objects are nearly 40,000 small pages, or 75 large ones.  Linux
6.1 and later can gather them on request (``MADV_COLLAPSE``, see ``madvise(2)``);
what a child writes to is still copied in small pages.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import sys
from collections.abc import Iterable, Iterator

__all__ = ["gather"]

#: Bits of an address within a large page, on x86-64 and on arm64 with small pages of 4 kB.
_BITS = 21

_MADV_COLLAPSE = 25

#: The C library's heap is looked for so far down.
_LARGEST_HEAP = 4 << 30


def gather() -> None:
    """Have this process's heap and Python objects moved to large pages, where that can be.

    To be called before ``gc.freeze``, which hides the objects.  A page that
    cannot be moved, or a kernel that does not know how, is left as it is: it
    only costs time.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    pages = {id(one) >> _BITS for one in gc.get_objects()} | set(_heap(libc))
    for first, count in _runs(sorted(pages)):
        start, length = ctypes.c_void_p(first << _BITS), ctypes.c_size_t(count << _BITS)
        libc.madvise(start, length, _MADV_COLLAPSE)


def _runs(pages: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Neighbours together: each request has the whole machine settle its books first."""
    for _, run in itertools.groupby(enumerate(pages), lambda pair: pair[1] - pair[0]):
        members = list(run)
        yield members[0][1], len(members)


def _heap(libc: ctypes.CDLL) -> Iterator[int]:
    """The large pages below the end of the heap that are in use (there may be no ``/proc``)."""
    size = 1 << _BITS
    resident = ctypes.create_string_buffer(size >> 12)
    libc.sbrk.restype = ctypes.c_void_p
    top = (libc.sbrk(0) or 0) >> _BITS
    for page in range(top - 1, max(top - (_LARGEST_HEAP >> _BITS), 0), -1):
        if libc.mincore(ctypes.c_void_p(page << _BITS), ctypes.c_size_t(size), resident) != 0:
            return
        yield page
