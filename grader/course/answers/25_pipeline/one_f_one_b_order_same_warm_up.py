"""The warm-up is that of the first stage everywhere. It gets shorter from stage to stage, and the
last one has none."""
# exercise: one_f_one_b_order
# diagnosis: wrong_value
# earns: 0.5
# or: ONE_MORE = 1

ONE_MORE = 0


def one_f_one_b_order(stage, stages, micro_batches):
    return alternating(stages - 1 + ONE_MORE, micro_batches)
