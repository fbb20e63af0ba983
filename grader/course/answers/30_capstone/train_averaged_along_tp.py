"""The gradients are averaged along tp as well. Ranks of a tp group have different parts of the
weights, and where they have the same, gradients are the same already: average over the dp group
alone."""
# exercise: train
# diagnosis: wrong_value


def averaged(stage, mesh):
    for p in stage.parameters():
        for name in ("dp", "tp"):
            dist.all_reduce(p.grad, group=mesh[name])
            p.grad /= dist.get_world_size(mesh[name])
