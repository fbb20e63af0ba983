"""These are sums: the division by n is missing."""
# exercise: average_gradients
# diagnosis: wrong_gradient


def average_gradients(module):
    for p in module.parameters():
        there = torch.tensor([float(p.grad is not None)])
        dist.all_reduce(there)
        if there:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad)
