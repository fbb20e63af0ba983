# exercise: ring_all_reduce
# diagnosis: none
# batch_isend_irecv, guided by ring_schedule.
import torch
import torch.distributed as dist


def ring_schedule(rank, world_size):
    steps = []
    for more in (0, 1):
        for s in range(1, world_size):
            steps.append(((rank - s + more) % world_size, (rank - s - 1 + more) % world_size))
    return steps


IN_PLACE = {
    "SUM": torch.Tensor.add_,
    "AVG": torch.Tensor.add_,
    "PRODUCT": torch.Tensor.mul_,
    "MIN": lambda a, b: a.copy_(torch.minimum(a, b)),
    "MAX": lambda a, b: a.copy_(torch.maximum(a, b)),
}


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    name = next(name for name in IN_PLACE if getattr(dist.ReduceOp, name) == op)
    chunks = torch.tensor_split(x.view(-1), n)
    for step, (send, receive) in enumerate(ring_schedule(rank, n)):
        buffer = torch.empty_like(chunks[receive])
        batch = [
            dist.P2POp(dist.isend, chunks[send], (rank + 1) % n),
            dist.P2POp(dist.irecv, buffer, (rank - 1) % n),
        ]
        for request in dist.batch_isend_irecv(batch):
            request.wait()
        act = IN_PLACE[name] if step < n - 1 else torch.Tensor.copy_
        act(chunks[receive], buffer)
    if name == "AVG":
        x /= n
