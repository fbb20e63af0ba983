# exercise: exchange
# diagnosis: deadlock
# hint: does the rank that is waited for
# not: Every rank that waits | let one side receive first
# The lower rank of a pair sends, and the higher one does not receive.
import torch.distributed as dist


def exchange(x, peer):
    if dist.get_rank() < peer:
        dist.send(x, peer)
    return x.clone()
