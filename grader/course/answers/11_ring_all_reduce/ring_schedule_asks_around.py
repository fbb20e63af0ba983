# exercise: ring_schedule
# diagnosis: forbidden_call
# hint: -
# Everybody tells everybody what it sends. It follows from the numbers alone.
import torch
import torch.distributed as dist


def ring_schedule(rank, world_size):
    n = world_size
    sends = [(rank - s) % n for s in range(1, n)] + [(rank - s + 1) % n for s in range(1, n)]
    mine = torch.tensor(sends, dtype=torch.int64)
    everybody = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, mine)
    return list(zip(sends, everybody[rank - 1].tolist(), strict=True))
