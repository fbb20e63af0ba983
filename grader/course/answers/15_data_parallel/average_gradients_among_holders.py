"""The sum is divided by the number of ranks that have the gradient. A gradient that is None counts
as zero: divide by n, always.
"""
# exercise: average_gradients
# diagnosis: wrong_gradient


def average_gradients(module):
    for p in module.parameters():
        holders = torch.tensor([float(p.grad is not None)])
        dist.all_reduce(holders)
        if holders:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
            p.grad /= holders.item()
