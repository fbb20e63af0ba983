"""Ranks that had no gradient still have None. The mean belongs to every rank, or their weights
will drift apart: give them p.grad = torch.zeros_like(p) first.
"""
# exercise: average_gradients
# diagnosis: wrong_gradient


def average_gradients(module):
    for p in module.parameters():
        total = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        dist.all_reduce(total)
        if p.grad is not None:
            p.grad.copy_(total / dist.get_world_size())
