"""The means are divided by the number of ranks once more. Divide once, either before the all_reduce or
after it.
"""
# exercise: average_gradients
# diagnosis: wrong_gradient


def average_gradients(module):
    parameters, n = list(module.parameters()), dist.get_world_size()
    there = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int64)
    dist.all_reduce(there)
    for p, count in zip(parameters, there.tolist()):
        if count:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad / n
            dist.all_reduce(p.grad)
            p.grad /= n
