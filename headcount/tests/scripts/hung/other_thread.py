"""Ranks communicate in a thread of their own, and that of rank 1 waits for its writer."""

# culprits: 1
# verdict: never entered
import queue
import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")


def communicate():
    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == 1:
        queue.Queue().get()
    dist.all_reduce(torch.ones(1))


thread = threading.Thread(target=communicate)
thread.start()
thread.join()  # culprit
