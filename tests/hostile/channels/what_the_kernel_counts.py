# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, control, attempts
import ctypes
import mmap
import os
import select
import socket
import sys
from pathlib import Path


def resident():
    """Which pages of a common file are in memory: others can be seen to read."""
    libc.mmap.restype = ctypes.c_void_p
    with open(sys.executable, "rb") as file:
        place = libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_PRIVATE, file.fileno(), 0)
    return call("mincore", ctypes.c_void_p(place), 4096, ctypes.create_string_buffer(1))


def in_flight():
    """Descriptors that were sent and not yet taken are counted by user."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, bytes(4))]
    return control().sendmsg([b"x"], rights)


ATTEMPTS = {
    "descriptors on their way": in_flight,
    "pages of pipes": lambda: os.pipe(),
    "numbers of sockets": lambda: socket.socketpair(),
    "watched descriptors": lambda: select.epoll().fileno(),
    "room on disks": lambda: os.statvfs("/usr").f_bfree,
    "how many processes and how much memory": lambda: call(
        "sysinfo", ctypes.create_string_buffer(256)
    ),
    "resident pages": resident,
    "load": lambda: os.getloadavg(),
    "statistics": lambda: Path("/proc/stat").read_text(),
    "connections": lambda: Path("/proc/net/tcp").read_text(),
    "priority": lambda: os.nice(1),
    "processors": lambda: os.sched_setaffinity(0, [0]),
}
