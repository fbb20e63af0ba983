"""The gradients are right, and the loss that is returned is that of one micro-batch, not the mean
of all."""
# exercise: run_pipeline
# diagnosis: wrong_value
# or: KEPT = "last, over m"
# or: KEPT = "first"

KEPT = "last"


def counted(total, loss, i, m):
    if KEPT == "first":
        return total or loss * m
    return loss if KEPT == "last, over m" else loss * m


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
