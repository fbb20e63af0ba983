"""A rank that has no gradient takes no part, and the others wait for it. It cannot know whether they
have one: it has to take part all the same, with zeros.
"""
# exercise: average_gradients
# diagnosis: deadlock


def average_gradients(module):
    for p in module.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
