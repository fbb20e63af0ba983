"""Only one micro-batch has left its gradients: they are cleared in between, or set and not added
up. backward adds to p.grad by itself."""
# exercise: run_pipeline
# diagnosis: wrong_gradient
# or: SHARE = "whole"

SHARE = "mean"


def loss_of(loss_fn, output, target, m):
    return loss_fn(output, target) / (m if SHARE == "mean" else 1)


def counted(total, loss, i, m):
    return total + loss / (1 if SHARE == "mean" else m)


def go_backward(stage, y, gradient=None):
    stage.zero_grad()
    y.backward(gradient)


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
