"""The loss of each micro-batch is divided by the number of its rows or numbers. loss_fn has taken
that mean already: divide by the number of micro-batches, len(targets)."""
# exercise: run_pipeline
# diagnosis: wrong_value
# or: BY = "numbers"

BY = "rows"


def loss_of(loss_fn, output, target, m):
    return loss_fn(output, target) / (len(target) if BY == "rows" else target.numel())


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
