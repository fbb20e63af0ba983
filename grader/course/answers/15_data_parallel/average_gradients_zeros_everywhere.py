"""A gradient that is None on all ranks stays None: zeros are something else to an optimizer with
momentum or weight decay.
"""
# exercise: average_gradients
# diagnosis: wrong_gradient


def average_gradients(module):
    for p in module.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
