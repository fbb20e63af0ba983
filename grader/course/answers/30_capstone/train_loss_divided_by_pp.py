"""The weights are right, but the losses are pp times too small: of a pp group only one rank knows
a loss, so a mean over its ranks is too small. Add up along pp, and divide by dp alone."""
# exercise: train
# diagnosis: wrong_value


def told(loss, mesh):
    total = torch.tensor(loss)
    dist.all_reduce(total, group=mesh["pp"])
    dist.all_reduce(total, group=mesh["dp"])
    return total.item() / dist.get_world_size(mesh["dp"]) / dist.get_world_size(mesh["pp"])
