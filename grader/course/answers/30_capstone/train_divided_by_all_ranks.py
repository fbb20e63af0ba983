"""The gradients are divided by the number of all ranks. A mean over the dp group divides by dp."""
# exercise: train
# diagnosis: wrong_value


def averaged(stage, mesh):
    for p in stage.parameters():
        dist.all_reduce(p.grad, group=mesh["dp"])
        p.grad /= dist.get_world_size()
