# promise: what stays within a rank keeps the points
# exercise: who_am_i
# verdict: passed
import mmap
import os
import queue
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist


def who_am_i():
    heard = []
    signal.signal(signal.SIGUSR2, lambda number, frame: heard.append(number))
    signal.raise_signal(signal.SIGUSR2)
    os.kill(os.getpid(), signal.SIGUSR2)
    assert heard == [signal.SIGUSR2] * 2
    memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[0] = dist.get_rank()
    given = queue.Queue()
    thread = threading.Thread(target=lambda: given.put(memory[0]))
    thread.start()
    thread.join()
    with open(os.dup(os.open(sys.executable, os.O_RDONLY)), "rb") as file:
        assert os.pread(file.fileno(), 4, 0) == file.read(4)
    assert time.thread_time() <= time.process_time()
    assert len(os.sched_getaffinity(0)) <= os.cpu_count()
    return torch.tensor([given.get(), dist.get_world_size()])
