"""Nothing has changed: each rank still has its own gradients."""
# exercise: average_gradients
# diagnosis: wrong_gradient


def average_gradients(module):
    for p in module.parameters():
        mean = p.detach().clone()
        dist.all_reduce(mean)
