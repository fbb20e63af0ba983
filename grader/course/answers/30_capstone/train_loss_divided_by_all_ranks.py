"""The weights are right, but the losses are divided by the number of all ranks. What the sums over
the pp group and over the dp group give is that of dp losses: divide by dp."""
# exercise: train
# diagnosis: wrong_value


def told(loss, mesh):
    total = torch.tensor(loss)
    dist.all_reduce(total, group=mesh["pp"])
    dist.all_reduce(total, group=mesh["dp"])
    return total.item() / dist.get_world_size()
