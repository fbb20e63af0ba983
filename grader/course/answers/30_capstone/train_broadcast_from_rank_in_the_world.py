"""A rank's number in a group is not its number in the world. src and dst take the one in the
world; group_src and group_dst take the one in the group."""
# exercise: train
# diagnosis: exception


def told(loss, mesh):
    total = torch.tensor(loss)
    dist.broadcast(total, dist.get_world_size(mesh["pp"]) - 1, group=mesh["pp"])
    dist.all_reduce(total, group=mesh["dp"])
    return total.item() / dist.get_world_size(mesh["dp"])
