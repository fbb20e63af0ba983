"""A rank that has no gradient takes no part, and the others wait for it. It cannot know whether they
have one: it has to take part all the same, with zeros.
"""
# exercise: average_gradients
# diagnosis: deadlock


def average_gradients(module):
    parameters = list(module.parameters())
    if all(p.grad is None for p in parameters):
        return
    there = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int64)
    dist.all_reduce(there)
    for p, count in zip(parameters, there.tolist(), strict=True):
        if count == 0:
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
