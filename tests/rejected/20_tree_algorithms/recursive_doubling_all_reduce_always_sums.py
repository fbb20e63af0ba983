# exercise: recursive_doubling_all_reduce
# diagnosis: wrong_value
# hint: whatever op says
import torch
import torch.distributed as dist


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    came = torch.empty_like(x)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    if rank + power < n:
        dist.recv(came, rank + power)
        x += came
    step = 1
    while step < power:
        request = dist.isend(x, rank ^ step)
        dist.recv(came, rank ^ step)
        request.wait()
        x += came
        step *= 2
    if op == dist.ReduceOp.AVG:
        x /= n
    if rank + power < n:
        dist.send(x, rank + power)
