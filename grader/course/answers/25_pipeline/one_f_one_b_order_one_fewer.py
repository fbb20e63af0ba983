"""The warm-up is one forward pass too short: the stage would wait for the first gradient while it
could run another forward pass."""
# exercise: one_f_one_b_order
# diagnosis: wrong_value


def one_f_one_b_order(stage, stages, micro_batches):
    return alternating(stages - stage - 2, micro_batches)
