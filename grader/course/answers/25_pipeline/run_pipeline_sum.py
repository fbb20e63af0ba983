"""The loss and the gradients are sums over the micro-batches. The mean is asked for: divide the
loss of each by their number before you call backward."""
# exercise: run_pipeline
# diagnosis: wrong_value


def loss_of(loss_fn, output, target, m):
    return loss_fn(output, target)


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
