# ranks: 3
"""A ring of messages, batches, object and functional collectives, a wildcard, hand-made futures."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
right, left = (rank + 1) % size, (rank - 1) % size
for _number in range(20):
    out, into = torch.full((4,), float(rank)), torch.zeros(4)
    requests = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, out, right), dist.P2POp(dist.irecv, into, left)]
    )
    for request in requests:
        request.wait()
    assert into[0] == left
box = [{"from": 0} if rank == 0 else None]
dist.broadcast_object_list(box)
assert box == [{"from": 0}]
found = funcol.all_reduce(torch.ones(2), "sum", list(range(size)))
assert float(found.sum()) == 2 * size
if rank == 0:
    for _ in range(size - 1):
        dist.recv(torch.zeros(1))
else:
    dist.send(torch.ones(1), 0)
future = dist.all_reduce(torch.ones(1), async_op=True).get_future()
assert float(future.then(lambda done: done.value()[0] * 2).wait()) == 2 * size
dist.destroy_process_group()
