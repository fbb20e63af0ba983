"""The weights are right, but the losses are tp times too large: all ranks of a tp group know the
same loss. Sum over the pp group and over the dp group, and not over all ranks."""
# exercise: train
# diagnosis: wrong_value


def told(loss, mesh):
    total = torch.tensor(loss)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size(mesh["dp"])
