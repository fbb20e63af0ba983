"""What the mistakes of this chapter share."""
import time

import torch
import torch.distributed as dist

PARTS = ("all_gather", "reduce_scatter", "all_to_all", "scatter", "gather")
WHOLE = ("broadcast", "reduce", "send_recv")


def factors(n):
    """Return what the algorithm bandwidth of each operation is multiplied with."""
    return {
        "all_reduce": 2 * (n - 1) / n,
        **dict.fromkeys(PARTS, (n - 1) / n),
        **dict.fromkeys(WHOLE, 1),
    }
