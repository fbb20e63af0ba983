# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
import ctypes
import mmap
import os
import resource
import sys

POPULATE_READ, COLD, PAGEOUT = 22, 20, 21


def file():
    return os.open(sys.executable, os.O_RDONLY)


def advise(advice):
    libc.mmap.restype = ctypes.c_void_p
    place = libc.mmap(None, 1 << 20, mmap.PROT_READ, mmap.MAP_PRIVATE, file(), 0)
    call("madvise", ctypes.c_void_p(place), 1 << 20, advice)
    return True


#: Ways to write bits to the memory that all have of a file, and to read them there.
ATTEMPTS = {
    "evict a file": lambda: os.posix_fadvise(file(), 0, 0, os.POSIX_FADV_DONTNEED) or True,
    "fetch a file": lambda: os.posix_fadvise(file(), 0, 0, os.POSIX_FADV_WILLNEED) or True,
    "read ahead": lambda: call("readahead", file(), ctypes.c_long(0), 4096) or True,
    "ask what is there": lambda: os.preadv(file(), [bytearray(1)], 0, os.RWF_NOWAIT),
    "fetch what is mapped": lambda: advise(mmap.MADV_WILLNEED),
    "fetch it now": lambda: advise(POPULATE_READ),
    "let it go": lambda: advise(COLD),
    "evict what is mapped": lambda: advise(PAGEOUT),
    "count what was not there": lambda: resource.getrusage(resource.RUSAGE_SELF).ru_majflt + 1,
}
