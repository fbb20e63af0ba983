"""It fails only where src is not rank 0. If v = (rank − src) % n is a place in the tree, then place
v is rank (v + src) % n, not (v − src) % n, in the send and in the recv."""
# exercise: tree_broadcast
# diagnosis: deadlock
# earns: 0.25
# or: SEND = 1
# or: RECV = 1
import torch.distributed as dist

#: What src is multiplied with where a place becomes a rank again.
SEND = -1
RECV = -1


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    step = 1
    while step < n:
        if v < step:
            if v + step < n:
                dist.send(x, (v + step + SEND * src) % n)
        elif v < 2 * step:
            dist.recv(x, (v - step + RECV * src) % n)
        step *= 2
