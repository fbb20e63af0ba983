# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
import ctypes
import fcntl
import os
import platform
import pty
import sys

X86 = platform.machine() == "x86_64"


def number(x86, other):
    return x86 if X86 else other


def lock(how):
    with open(sys.executable, "rb") as file:
        return how(file)


def semaphore():
    libc.sem_open.restype = ctypes.c_void_p
    return libc.sem_open(b"/hostile", os.O_CREAT, 0o666, 1) or call("no_semaphore")


ATTEMPTS = {
    "posix queue": lambda: call("mq_open", b"/hostile", os.O_CREAT | os.O_RDWR, 0o666, None),
    "named semaphore": semaphore,
    "key": lambda: call(
        "syscall", number(248, 217), b"user", b"hostile", b"value", 5, ctypes.c_long(-3)
    ),
    "key control": lambda: call("syscall", number(250, 219), 0, ctypes.c_long(-3), 1),
    "lock of a file": lambda: lock(lambda file: fcntl.flock(file, fcntl.LOCK_SH)) or "locked",
    "lock of bytes": lambda: lock(lambda f: fcntl.lockf(f, fcntl.LOCK_SH, 1)) or "locked",
    "lease": lambda: lock(lambda file: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)),
    "terminal": pty.openpty,
    "watch of files": lambda: call("inotify_init"),
    "io_uring": lambda: call("syscall", 425, 1, ctypes.create_string_buffer(256)),
    "bpf": lambda: call("syscall", number(321, 280), 0, None, 0),
    "userfaultfd": lambda: call("syscall", number(323, 282), 0),
    "performance counters": lambda: call(
        "syscall", number(298, 241), ctypes.create_string_buffer(128), 0, -1, -1, 0
    ),
}
