"""The gradients are added up over dp, and not averaged: the loss of the batch is the mean of the
ranks' losses, so divide by dp."""
# exercise: train
# diagnosis: wrong_value


def averaged(stage, mesh):
    for p in stage.parameters():
        dist.all_reduce(p.grad, group=mesh["dp"])
