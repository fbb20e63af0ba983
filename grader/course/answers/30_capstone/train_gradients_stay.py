"""Gradients of earlier batches are still there when those of the next are added. Set p.grad = None
before each batch."""
# exercise: train
# diagnosis: wrong_value


def clear(stage):
    pass
