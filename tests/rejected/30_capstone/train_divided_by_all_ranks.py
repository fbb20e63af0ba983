# exercise: train
# diagnosis: wrong_value
# hint: divided by the number of all ranks
# on: 30_capstone
def average_in_group(module, group):
    """Every gradient becomes its mean over the group."""
    for p in module.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= dist.get_world_size()
