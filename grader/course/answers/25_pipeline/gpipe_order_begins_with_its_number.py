"""A later stage leaves out micro-batches: stage s begins with number s. Every stage runs all of them;
a later one only begins later, and waiting is not in the list."""
# exercise: gpipe_order
# diagnosis: wrong_shape


def gpipe_order(stage, stages, micro_batches):
    own = range(stage, micro_batches)
    return [("forward", i) for i in own] + [("backward", i) for i in own]
