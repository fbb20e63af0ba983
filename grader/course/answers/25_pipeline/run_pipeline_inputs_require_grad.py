"""The inputs of the first stage may be integers, such as numbers of tokens, which have no
gradient. Nothing has to be sent back from there."""
# exercise: run_pipeline
# diagnosis: exception


def first_input(x):
    return x.detach().requires_grad_()


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
