# promise: a rank starts no process and touches none but itself
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
import ctypes
import os


def others():
    return [os.getppid(), 1, 2, *range(os.getpid() - 8, os.getpid())]


class Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def read(pid):
    buffer = ctypes.create_string_buffer(64)
    mine = Vector(ctypes.addressof(buffer), 64)
    theirs = Vector(
        id(None),
        16,
    )
    return call("process_vm_readv", pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)


def each(how):
    for pid in others():
        try:
            return pid, how(pid)
        except OSError:
            continue
    raise PermissionError


ATTEMPTS = {
    "attach": lambda: each(lambda pid: call("ptrace", 16, pid, None, None)),
    "seize": lambda: each(lambda pid: call("ptrace", 0x4206, pid, None, None)),
    "be traced": lambda: call("ptrace", 0, 0, None, None),
    "read memory": lambda: each(read),
    "memory file": lambda: each(lambda pid: os.open(f"/proc/{pid}/mem", os.O_RDONLY)),
    "become dumpable": lambda: call("prctl", 4, 1, 0, 0, 0),
    "outlive the parent": lambda: call("prctl", 1, 0, 0, 0, 0),
    "adopt": lambda: call("prctl", 36, 1, 0, 0, 0),
    "filter": lambda: call("prctl", 22, 2, None, 0, 0),
}
