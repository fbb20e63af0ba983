"""The gradients are divided by dp twice. One division makes the mean: either of the loss, or of
the sum of the gradients."""
# exercise: train
# diagnosis: wrong_value


def averaged(stage, mesh):
    for p in stage.parameters():
        dist.all_reduce(p.grad, group=mesh["dp"])
        p.grad /= dist.get_world_size(mesh["dp"]) ** 2
