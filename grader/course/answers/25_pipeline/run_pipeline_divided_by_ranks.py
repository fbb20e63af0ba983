"""The loss is divided by the number of stages. It is the mean over micro-batches: divide by
len(targets)."""
# exercise: run_pipeline
# diagnosis: wrong_value


def loss_of(loss_fn, output, target, m):
    return loss_fn(output, target) / dist.get_world_size()


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
