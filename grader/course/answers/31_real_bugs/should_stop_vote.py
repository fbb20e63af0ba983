"""The ranks vote. One rank with a far better loss can make the mean better, though most are worse:
sum the losses, and not the answers of the ranks."""
# exercise: should_stop
# diagnosis: wrong_value
# or: HALF = False
import torch
import torch.distributed as dist

#: Whether half of the votes are enough.
HALF = True


def should_stop(loss, best):
    votes = torch.tensor(float(loss >= best))
    dist.all_reduce(votes)
    n = dist.get_world_size()
    return votes.item() >= n / 2 if HALF else votes.item() > n / 2
