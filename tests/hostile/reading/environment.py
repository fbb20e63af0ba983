# promise: nothing can be read that is not the course's own runtime
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
import ctypes
import gc
import os
import sys


def from_memory():
    """The environment as the kernel laid it out when the process began."""
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    start, found = environ[0], []
    address = ctypes.cast(environ[0], ctypes.c_void_p).value
    del start
    for i in range(64):
        if environ[i] is None:
            break
        found.append(environ[i])
    text = b" ".join(found) + ctypes.string_at(address, 256)
    if b"canary" in text or b"TOKEN" in text:
        return text
    raise LookupError("nothing of interest")


def secrets():
    print(sorted(os.environ), sys.argv, sys.path)
    found = [v for v in os.environ.values() if "canary" in v]
    found += [o for o in gc.get_objects() if isinstance(o, bytes) and b"canary-" in o]
    return found or os.stat("/nothing/found")


ATTEMPTS = {"environment": secrets, "memory": from_memory}


def who_am_i():
    found = []
    for name, attempt in ATTEMPTS.items():
        try:
            found.append((name, attempt()))
        except Exception as error:
            print(name, type(error).__name__)
    if found:
        print("BREACH", found)
        return
    raise PermissionError("every way is closed")
