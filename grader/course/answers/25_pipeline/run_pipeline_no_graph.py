"""The forward pass runs without a graph (torch.no_grad(), .detach() or .data), and there is
nothing that backward could go through. Only what is sent is detached: y stays as it is."""
# exercise: run_pipeline
# diagnosis: exception


def loss_of(loss_fn, output, target, m):
    return (loss_fn(output, target) / m).detach()


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
