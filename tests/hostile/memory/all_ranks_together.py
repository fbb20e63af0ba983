# promise: memory has a limit, whatever it is taken for
# exercise: broadcast
# verdict: failed
# diagnosis: memory_limit
import time

import torch.distributed as dist


def broadcast(x, src):
    if dist.get_world_size() < 3:
        return None
    # below what one rank may have, on every rank
    held = bytearray(3 << 28)
    time.sleep(0.6)
    return held
