"""Zeros are sent back: a received tensor has no gradient unless x.requires_grad_() comes before
stage(x)."""
# exercise: run_pipeline
# diagnosis: wrong_gradient


def received(x):
    return x


def sent_back(x):
    return torch.zeros_like(x)


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
