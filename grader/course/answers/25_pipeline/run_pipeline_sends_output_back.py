"""An activation is sent back, where the gradient of the loss is due: backward leaves it in x.grad,
and that is the gradient of what the stage before has sent."""
# exercise: run_pipeline
# diagnosis: wrong_gradient


def sent_back(x):
    return x.detach().clone()


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
