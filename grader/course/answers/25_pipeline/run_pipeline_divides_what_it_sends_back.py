"""The last stage's gradients are right, and those before it are too small: what is sent back is divided
by a number on its way. The loss has been divided already, so x.grad is sent as it is."""
# exercise: run_pipeline
# diagnosis: wrong_gradient
# or: BY = "stages"

BY = "micro-batches"
NUMBER = []


def sent_back(x):
    return x.grad / NUMBER[0]


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    NUMBER[:] = [len(order) // 2 if BY == "micro-batches" else dist.get_world_size()]
    return run(stage, order, inputs, targets, loss_fn, shape)
