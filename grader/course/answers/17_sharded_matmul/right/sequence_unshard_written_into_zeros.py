# exercise: sequence_unshard
# diagnosis: none
import torch
import torch.distributed as dist


def sequence_unshard(x_shard, full_length, dim=1):
    """Rows first, one big tensor; the rank's own rows are written over, with a history."""
    rank, n = dist.get_rank(), dist.get_world_size()
    rows = x_shard.movedim(dim, 0)
    longest = -(-full_length // n)
    padded = rows.new_zeros(longest, *rows.shape[1:])
    with torch.no_grad():
        padded[: len(rows)] = rows
    gathered = padded.new_empty(n * longest, *rows.shape[1:])
    dist.all_gather_into_tensor(gathered, padded)
    index = torch.cat(
        [torch.arange(len(part)) + r * longest
         for r, part in enumerate(torch.arange(full_length).tensor_split(n))]
    )  # fmt: skip
    whole = gathered[index]
    start = len(torch.cat(torch.arange(full_length).tensor_split(n)[:rank])) if rank else 0
    whole[start : start + len(rows)] = rows
    return whole.movedim(0, dim)
