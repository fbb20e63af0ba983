"""Each rank of dp makes its step with its own gradients, and the copies of the model drift apart.
Average them over the dp group before the step."""
# exercise: train
# diagnosis: wrong_value
# or: LOSS = "own"

LOSS = "of all"
mean = told


def averaged(stage, mesh):
    pass


def told(loss, mesh):
    if LOSS == "of all":
        return mean(loss, mesh)
    total = torch.tensor(loss)
    dist.all_reduce(total, group=mesh["pp"])
    return total.item()
