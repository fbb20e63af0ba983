# exercise: gather_ragged
# diagnosis: none
import torch
import torch.distributed as dist
from torch.nn.functional import pad


def gather_ragged(x):
    """Numbers are counted, and not rows; nothing is gathered where nobody has any."""
    n, row = dist.get_world_size(), x.shape[1:]
    lengths = [torch.tensor(0) for _ in range(n)]
    dist.all_gather(lengths, torch.tensor(x.numel()))
    most = max(lengths).item()
    if most == 0:
        return [x.clone() for _ in range(n)]
    flat = [x.new_zeros(most) for _ in range(n)]
    dist.all_gather(flat, pad(x.flatten(), (0, most - x.numel())))
    return [one[:length].reshape(-1, *row) for one, length in zip(flat, lengths, strict=True)]
