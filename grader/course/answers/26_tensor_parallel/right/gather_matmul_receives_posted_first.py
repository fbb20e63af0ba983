# exercise: gather_matmul
# diagnosis: none
import torch
import torch.distributed as dist


def gather_matmul(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = [torch.empty_like(x_shard) for _ in range(n)]
    pieces[rank] = x_shard
    order = [(rank - step) % n for step in range(n)]
    receives = [dist.irecv(pieces[owner], (rank - 1) % n) for owner in order[1:]]
    sends, products = [], {}
    for step, owner in enumerate(order):
        if step:
            receives[step - 1].wait()
        if step < n - 1:
            sends.append(dist.isend(pieces[owner], (rank + 1) % n))
        products[owner] = multiply(pieces[owner])
    for request in sends:
        request.wait()
    return torch.cat([products[r] for r in range(n)])
