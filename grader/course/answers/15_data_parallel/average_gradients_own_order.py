"""The ranks go through the gradients in different orders, so that one gradient meets another in a
collective. Take the parameters in the order of module.parameters(), which is the same on all ranks,
whichever gradients a rank has.
"""
# exercise: average_gradients
# diagnosis: size_mismatch
# or: LAST = True

#: Whether the gradients that a rank has come last; else those that it has not.
LAST = False


def average_gradients(module):
    parameters = list(module.parameters())
    there = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int64)
    dist.all_reduce(there)
    todo = [p for p, count in zip(parameters, there.tolist()) if count]
    for p in sorted(todo, key=lambda p: (p.grad is None) != LAST):
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
