"""Where some ranks have a gradient and others have None, nothing is averaged. None counts as zeros as
soon as one rank has a gradient: only where all ranks have None does it stay.
"""
# exercise: average_gradients
# diagnosis: wrong_gradient


def average_gradients(module):
    for p in module.parameters():
        there = torch.tensor([float(p.grad is not None)])
        dist.all_reduce(there, op=dist.ReduceOp.MIN)
        if there:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
