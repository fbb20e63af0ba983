# promise: the store is no way to pass values
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control

import torch.distributed as dist


def neighbours():
    from headcount.core.wire import Put

    rank, n = dist.get_rank(), dist.get_world_size()
    control().sendall(framed(Put(f"from {rank}", b"a value", None, 1)))
    return (rank - 1) % n, (rank + 1) % n
