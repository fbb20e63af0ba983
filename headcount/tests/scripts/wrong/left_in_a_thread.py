# ranks: 2
# diagnosis: deadlock
# status: 3
"""A thread that the script leaves behind waits for the other rank."""

import threading

import torch.distributed as dist

dist.init_process_group()
if dist.get_rank() == 0:
    threading.Thread(target=dist.barrier).start()  # here
