"""A mean of zeros became None. Zeros are a gradient: only where no rank has one is there none, and
that the values of the sum do not show. Let the ranks count how many of them have it.
"""
# exercise: average_gradients
# diagnosis: wrong_gradient


def average_gradients(module):
    for p in module.parameters():
        total = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        dist.all_reduce(total)
        p.grad = total / dist.get_world_size() if total.any() else None
