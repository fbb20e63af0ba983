# exercise: train
# diagnosis: wrong_value
# hint: -
# on: 30_capstone
def average_in_group(module, group):
    for p in module.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size(group)
