"""The gradients of embedding and head are added up over tp, and so are tp times too large. All
ranks of a tp group have them whole and alike: along tp nothing is left to do for them."""
# exercise: train
# diagnosis: wrong_value

right = averaged


def averaged(stage, mesh):
    right(stage, mesh)
    for layer in stage:
        if isinstance(layer, (Embed, Head)):
            dist.all_reduce(layer.weight.grad, group=mesh["tp"])
