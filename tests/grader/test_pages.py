"""Large pages: which are asked for, and that nothing is lost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headcount.server import fork_server

#: In a process of its own: it moves all that the process has.
MOVE = """
import ctypes, random, sys
sys.argv[0] = "-m"  # as in a command: the import of grader starts nothing
from headcount.server import fork_server

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
# less than 2 MiB of heap fill no large page
pieces = [libc.malloc(64 << 10) for _ in range(128)]
mine = pieces[64]
assert mine >> 21 in set(fork_server._heap(libc)), "the heap is not found"

words = [random.Random(i).randbytes(500) for i in range(20_000)]
ctypes.memmove(mine, b"m" * 64, 64)
fork_server.use_huge_pages()
assert words == [random.Random(i).randbytes(500) for i in range(20_000)]
assert ctypes.string_at(mine, 64) == b"m" * 64
for piece in pieces:
    libc.free(ctypes.c_void_p(piece))
"""


@pytest.mark.parametrize(
    ("given", "runs"),
    [
        ([], []),
        ([7], [(7, 1)]),
        ([1, 2, 3, 7, 9, 10], [(1, 3), (7, 1), (9, 2)]),
    ],
)
def test_neighbours_are_asked_for_together(given, runs):
    assert list(fork_server.adjacent(given)) == runs


@pytest.mark.skipif(sys.platform != "linux", reason="large pages are asked for on Linux only")
def test_what_is_moved_stays_as_it_was():
    done = subprocess.run([sys.executable, "-c", MOVE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
