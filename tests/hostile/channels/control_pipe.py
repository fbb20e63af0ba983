# promise: what stays within a rank keeps the points
# exercise: who_am_i
# verdict: passed
import os
import select

import torch
import torch.distributed as dist


def who_am_i():
    reader, writer = os.pipe()
    os.write(writer, bytes([dist.get_rank()]))
    assert select.select([reader], [], [], 0)[0]
    return torch.tensor([os.read(reader, 1)[0], dist.get_world_size()])
