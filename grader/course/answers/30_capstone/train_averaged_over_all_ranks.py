"""The gradients are added up over all ranks. Those of other parts and other layers do not belong
together: name the group in all_reduce, group=mesh["dp"]."""
# exercise: train
# diagnosis: wrong_value
# or: DIVIDED_BY = "all"

DIVIDED_BY = "dp"


def averaged(stage, mesh):
    for p in stage.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size(mesh["dp"] if DIVIDED_BY == "dp" else None)
