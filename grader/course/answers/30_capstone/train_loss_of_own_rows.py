"""Each rank of dp returns the loss of its own rows. The weights are right; the loss of the whole
batch is the mean over dp."""
# exercise: train
# diagnosis: wrong_value


def told(loss, mesh):
    total = torch.tensor(loss)
    dist.all_reduce(total, group=mesh["pp"])
    return total.item()
