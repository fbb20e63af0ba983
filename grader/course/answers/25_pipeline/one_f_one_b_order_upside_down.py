"""The warm-up gets longer from stage to stage here. It is the first stage that waits longest for a
gradient."""
# exercise: one_f_one_b_order
# diagnosis: wrong_value


def one_f_one_b_order(stage, stages, micro_batches):
    return alternating(stage, micro_batches)
