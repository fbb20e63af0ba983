# promise: a rank may ask about itself
# exercise: who_am_i
# verdict: passed
import os
import signal

import torch
import torch.distributed as dist


def who_am_i():
    heard = []
    signal.signal(signal.SIGUSR2, lambda number, _: heard.append(number))
    os.kill(os.getpid(), signal.SIGUSR2)
    assert heard == [signal.SIGUSR2]
    return torch.tensor([dist.get_rank(), dist.get_world_size()])
