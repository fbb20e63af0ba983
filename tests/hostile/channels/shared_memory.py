# promise: ranks pass each other nothing but messages
# exercise: who_am_i
# verdict: failed
# diagnosis: exception
# says: every way is closed
# parts: libc, attempts
import mmap
import os
from multiprocessing import shared_memory

import torch


def zero():
    fd = os.open("/dev/zero", os.O_RDWR)
    return len(mmap.mmap(fd, 4096))


ATTEMPTS = {
    "posix": lambda: shared_memory.SharedMemory("hostile", create=True, size=64).name,
    "anonymous": lambda: len(mmap.mmap(-1, 4096)),
    "zero": zero,
    "memfd": lambda: os.memfd_create("hostile"),
    "system v": lambda: call("shmget", 0x4242, 4096, 0o1666),
    "semaphores": lambda: call("semget", 0x4242, 1, 0o1666),
    "queue of system v": lambda: call("msgget", 0x4242, 0o1666),
    "tensor": lambda: torch.zeros(4).share_memory_().numel(),
}
