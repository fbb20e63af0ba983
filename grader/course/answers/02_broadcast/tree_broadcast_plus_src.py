"""It is right from rank 0 and wrong from most others. Counted from the source, a rank's number is (rank
− src) % n, not (rank + src) % n."""
# exercise: tree_broadcast
# diagnosis: deadlock
# earns: 0.25
import torch.distributed as dist


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() + src) % n
    step = 1
    while step < n:
        if v < step:
            if v + step < n:
                dist.send(x, (v + step + src) % n)
        elif v < 2 * step:
            dist.recv(x, (v - step + src) % n)
        step *= 2
