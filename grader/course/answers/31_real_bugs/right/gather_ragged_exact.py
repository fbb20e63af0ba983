# exercise: gather_ragged
# diagnosis: none
import torch
import torch.distributed as dist


def gather_ragged(x):
    """Point to point once the sizes are known: no padding travels, and empty messages do not."""
    rank, n = dist.get_rank(), dist.get_world_size()
    counts = [torch.zeros(1, dtype=torch.int64) for _ in range(n)]
    dist.all_gather(counts, torch.tensor([x.size(0)]))
    parts = [x.new_empty(int(count), *x.shape[1:]) for count in counts]
    parts[rank].copy_(x)
    others = [r for r in range(n) if r != rank]
    calls = [dist.P2POp(dist.isend, x, r) for r in others if x.numel()]
    calls += [dist.P2POp(dist.irecv, parts[r], r) for r in others if parts[r].numel()]
    if calls:
        for request in dist.batch_isend_irecv(calls):
            request.wait()
    return parts
