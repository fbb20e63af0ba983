# exercise: ring_all_reduce
# diagnosis: none
# Empty chunks are left out on both sides; receives come from anybody, and only
# the left neighbour ever sends.
from itertools import pairwise

import torch
import torch.distributed as dist


class Ring:
    def __init__(self):
        self.rank, self.n = dist.get_rank(), dist.get_world_size()
        self.right = (self.rank + 1) % self.n

    def step(self, out, into):
        requests = []
        if out.numel():
            requests.append(dist.isend(out, self.right))
        if into.numel():
            dist.recv(into)
        for request in requests:
            request.wait()


def ring_all_reduce(x: torch.Tensor, op) -> None:
    ring = Ring()
    rank, n = ring.rank, ring.n
    flat = x.reshape(-1)
    bounds = [i * len(flat) // n for i in range(n + 1)]
    chunks = [flat[a:b] for a, b in pairwise(bounds)]
    functions = {dist.ReduceOp.MIN: torch.minimum, dist.ReduceOp.MAX: torch.maximum}
    for s in range(1, n):
        mine = chunks[(rank - s - 1) % n]
        came = torch.zeros_like(mine)
        ring.step(chunks[(rank - s) % n], came)
        if op == dist.ReduceOp.PRODUCT:
            mine *= came
        elif op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            mine += came
        else:
            mine.copy_(functions[op](mine, came))
    for s in range(1, n):
        ring.step(chunks[(rank - s + 1) % n], chunks[(rank - s) % n])
    if op == dist.ReduceOp.AVG:
        flat /= n
    x.copy_(flat.reshape(x.shape))
