"""That is the sum of the losses: divide by the number of ranks."""
# exercise: unblock_branch
# diagnosis: wrong_value
import torch.distributed as dist


def unblock_branch(loss, log):
    total = loss.clone()
    dist.all_reduce(total)
    if log:
        print(f"loss {total.item():.4f}")
    return total
