"""That is the loss of the first part of the batch: of the ranks whose coordinate d is 0. The loss of
the whole batch is the mean over dp."""
# exercise: train
# diagnosis: wrong_value


def told(loss, mesh):
    total = torch.tensor(loss if dist.get_rank(mesh["dp"]) == 0 else 0.0)
    dist.all_reduce(total, group=mesh["pp"])
    dist.all_reduce(total, group=mesh["dp"])
    return total.item()
