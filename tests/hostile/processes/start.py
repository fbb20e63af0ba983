# promise: a rank starts no process and touches none but itself
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
import ctypes
import multiprocessing
import os
import platform
import subprocess
import sys


def fork():
    if os.fork() == 0:
        os._exit(0)
    return "forked"


def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                pass
        os._exit(0)
    return "a daemon"


def context(name):
    process = multiprocessing.get_context(name).Process(target=print)
    process.start()
    return name


ATTEMPTS = {
    "fork": fork,
    "daemon": daemon,
    "run": lambda: subprocess.run(["/bin/true"]),
    "shell": lambda: os.system("true") == 0 or os.stat("/nothing/found"),
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "execute": lambda: os.execv(sys.executable, [sys.executable, "-c", "print('BREACH')"]),
    "multiprocessing": lambda: context("fork"),
    "raw fork": lambda: call("syscall", 57) if platform.machine() == "x86_64" else fork(),
    "raw vfork": lambda: call("syscall", 58) if platform.machine() == "x86_64" else fork(),
    "raw clone": lambda: (
        call("syscall", 56, 17, 0, 0, 0, 0)
        if platform.machine() == "x86_64"
        else call("syscall", 220, 17, 0, 0, 0, 0)
    ),
    "raw clone3": lambda: call("syscall", 435, ctypes.create_string_buffer(88), 88),
    "another user": lambda: os.setuid(0),
    "another session": lambda: os.setsid(),
    "namespaces": lambda: call("unshare", 0x10000000),
}
