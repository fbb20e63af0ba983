"""The loss is a mean, and the gradients are sums over the micro-batches: divide before you call
backward."""
# exercise: run_pipeline
# diagnosis: wrong_gradient


def loss_of(loss_fn, output, target, m):
    return loss_fn(output, target)


def counted(total, loss, i, m):
    return total + loss / m


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
