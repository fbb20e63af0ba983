# promise: a rank answers for itself only
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control

import torch.distributed as dist


def neighbours():
    from headcount.core.codec import pack

    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        others = [
            ["returned", pack(((r - 1) % n, (r + 1) % n)), pack(()), [], 0, r] for r in range(n)
        ]
        control().sendall(framed(*others, *others))
    return (rank - 1) % n, (rank + 1) % n
