"""backward goes through the same output twice. Several micro-batches are in flight: keep the
output of each under its number, and take that of micro-batch i."""
# exercise: run_pipeline
# diagnosis: exception


def taken(kept, i):
    return kept[max(kept)]


def run_pipeline(stage, order, inputs, targets, loss_fn, shape):
    return run(stage, order, inputs, targets, loss_fn, shape)
