# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
import ctypes
import os
import platform
import resource
import signal
import threading

QUEUE = 297 if platform.machine() == "x86_64" else 240  # rt_tgsigqueueinfo
NUMBER = signal.SIGRTMIN + 3


def lower(kind):
    """A limit that is moved step by step to where it is reached tells what others count for."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (min(100, hard), hard))
    return True


def queue():
    signal.pthread_sigmask(signal.SIG_BLOCK, [NUMBER])
    told = (ctypes.c_int * 32)(NUMBER, 0, -1)
    return call("syscall", QUEUE, os.getpid(), threading.get_native_id(), NUMBER, told) or True


def pend():
    signal.pthread_sigmask(signal.SIG_BLOCK, [NUMBER])
    signal.pthread_kill(threading.get_ident(), NUMBER)
    return True


ATTEMPTS = {
    "queue a signal": queue,
    "let one wait": pend,
    "take it back": lambda: signal.sigtimedwait([NUMBER], 0) or True,
    "limit on signals": lambda: lower(resource.RLIMIT_SIGPENDING),
    "limit on threads": lambda: lower(resource.RLIMIT_NPROC),
    "timer": lambda: call("timer_create", 0, None, ctypes.byref(ctypes.c_void_p())) or True,
}
