# exercise: train
# diagnosis: wrong_value
# hint: added up over dp, and not averaged
# on: 30_capstone
def average_in_group(module, group):
    for p in module.parameters():
        dist.all_reduce(p.grad, group=group)
