"""loss_fn takes the output first and then the target."""
# exercise: run_pipeline
# diagnosis: wrong_value


def loss_of(loss_fn, output, target, m):
    return loss_fn(target, output) / m


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
