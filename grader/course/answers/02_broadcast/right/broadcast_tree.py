# exercise: broadcast
# diagnosis: none
# A binomial tree for any source and any number of ranks.
import torch.distributed as dist


def broadcast(x, src):
    n = dist.get_world_size()
    virtual = (dist.get_rank() - src) % n

    def real(v):
        return (v + src) % n

    step = 1
    while step < n:
        if virtual < step:
            if virtual + step < n:
                dist.send(x, real(virtual + step))
        elif virtual < 2 * step:
            dist.recv(x, real(virtual - step))
        step *= 2
