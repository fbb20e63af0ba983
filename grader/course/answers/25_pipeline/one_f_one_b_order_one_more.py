"""The warm-up is one forward pass too long: in the steady state a forward pass comes first, so
stages − stage micro-batches are in flight after it, and not one more."""
# exercise: one_f_one_b_order
# diagnosis: wrong_value
# earns: 0.5


def one_f_one_b_order(stage, stages, micro_batches):
    return alternating(stages - stage, micro_batches)
