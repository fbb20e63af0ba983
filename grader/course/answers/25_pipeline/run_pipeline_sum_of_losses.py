"""The gradients are right, and the loss that is returned is a sum over the micro-batches. The mean
is asked for."""
# exercise: run_pipeline
# diagnosis: wrong_value


def counted(total, loss, i, m):
    return total + loss * m


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
