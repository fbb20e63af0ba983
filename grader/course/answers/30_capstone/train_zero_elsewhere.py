"""The loss has not been passed on: ranks of other stages return 0. Sum over the pp group, in which
only the last stage has another number than 0, or broadcast from it."""
# exercise: train
# diagnosis: wrong_value


def told(loss, mesh):
    total = torch.tensor(loss)
    dist.all_reduce(total, group=mesh["dp"])
    return total.item() / dist.get_world_size(mesh["dp"])
