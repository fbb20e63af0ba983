# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
import ctypes
import mmap
import platform
import sys
import threading
import time

FUTEX = 202 if platform.machine() == "x86_64" else 98
WAIT, WAKE = 0, 1


def ring():
    """A futex in a file that all ranks have mapped: a bell, and a count of who hears it."""
    libc.mmap.restype = ctypes.c_void_p
    with open(sys.executable, "rb") as file:
        place = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, file.fileno(), 0)
    word = ctypes.c_uint32.from_address(place).value
    timeout = (ctypes.c_long * 2)(1, 0)

    def wait():
        libc.syscall(FUTEX, ctypes.c_void_p(place), WAIT, word, timeout, None, 0)

    waiters = [threading.Thread(target=wait) for _ in range(3)]
    for one in waiters:
        one.start()
    heard, until = 0, time.monotonic() + 0.5
    while heard < 3 and time.monotonic() < until:
        heard += call("syscall", FUTEX, ctypes.c_void_p(place), WAKE, 3, None, None, 0)
    if not heard:
        raise LookupError("nobody hears it")
    return heard


ATTEMPTS = {"ring": ring}
