# exercise: sync_parameters
# diagnosis: none
from itertools import chain

import torch.distributed as dist


def sync_parameters(module, src):
    requests = [
        dist.broadcast(tensor.data, src=src, async_op=True)
        for tensor in chain(module.parameters(), module.buffers())
    ]
    for request in requests:
        request.wait()
