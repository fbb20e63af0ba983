"""x.grad is None: autograd does not compute a gradient for a received tensor unless
x.requires_grad_() comes before stage(x)."""
# exercise: run_pipeline
# diagnosis: exception
# or: SENT = "contiguous"
# or: SENT = "clone"
# or: SENT = "detach"

SENT = "as it is"


def received(x):
    return x


def sent_back(x):
    return x.grad if SENT == "as it is" else getattr(x.grad, SENT)()


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
