# promise: no word of a rank can make the judge fail
# exercise: neighbours
# verdict: failed
# diagnosis: tampering
# parts: control

import torch.distributed as dist


def neighbours():
    import time

    from headcount.core.codec import pack
    from headcount.core.wire import Returned

    rank, n = dist.get_rank(), dist.get_world_size()
    value = pack(((rank - 1) % n, (rank + 1) % n))
    control().sendall(framed(Returned(value, pack(()), ["99", "-7"], 0)))
    time.sleep(1000)
