# exercise: sequence_shard
# diagnosis: none
import torch
import torch.distributed as dist


def sequence_shard(x, dim=1):
    """A hook on x turns "my part, and zeros" into everybody's parts."""
    n, rank = dist.get_world_size(), dist.get_rank()

    def fill(grad):
        # the longest part first in its dimension, so that parts are rows
        rows = grad.movedim(dim, 0)
        longest = -(-rows.shape[0] // n)
        mine = rows.tensor_split(n)[rank]
        padded = mine.new_zeros(longest, *mine.shape[1:])
        padded[: len(mine)] = mine
        whole = padded.new_empty(n * longest, *mine.shape[1:])
        dist.all_gather_into_tensor(whole, padded)
        lengths = [len(part) for part in rows.tensor_split(n)]
        parts = [whole[r * longest : r * longest + k] for r, k in enumerate(lengths)]
        return torch.cat(parts).movedim(0, dim)

    if x.requires_grad:
        x = x.view_as(x)
        x.register_hook(fill)
    return x.tensor_split(n, dim)[rank].clone()
