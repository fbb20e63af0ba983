"""x.grad is None: autograd does not compute a gradient for a received tensor unless
x.requires_grad_() comes before stage(x)."""
# exercise: run_pipeline
# diagnosis: exception


def received(x):
    return x


def taken(kept, i):
    x, y = kept.pop(i)
    return (x.requires_grad_() if x.is_floating_point() else x), y


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
