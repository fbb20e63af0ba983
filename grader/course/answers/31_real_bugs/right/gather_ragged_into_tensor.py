# exercise: gather_ragged
# diagnosis: none
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    counts = torch.empty(n, dtype=torch.int32)
    dist.all_gather_into_tensor(counts, torch.tensor([x.shape[0]], dtype=torch.int32))
    longest = int(counts.max())
    padded = torch.cat([x, x.new_empty(longest - len(x), *x.shape[1:])])
    everyone = x.new_empty(n * longest, *x.shape[1:])
    dist.all_gather_into_tensor(everyone, padded)
    return [everyone[r * longest :][: counts[r]] for r in range(n)]
