"""Each rank trains by itself: its weights are those of its own batches. The gradients of all ranks
have to be added up in each step."""
# exercise: train_uneven
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def train_uneven(module, batches, lr):
    longest = torch.tensor(len(batches))
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    for batch in batches:
        module.zero_grad()
        module(batch).sum().backward()
        with torch.no_grad():
            for p in module.parameters():
                if p.grad is not None:
                    p -= lr * p.grad
    return longest.item()
