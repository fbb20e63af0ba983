"""The losses are added up over dp: the loss of the batch is their mean."""
# exercise: train
# diagnosis: wrong_value


def told(loss, mesh):
    total = torch.tensor(loss)
    dist.all_reduce(total, group=mesh["pp"])
    dist.all_reduce(total, group=mesh["dp"])
    return total.item()
