"""The last backward passes are missing: after the last forward pass, as many are left as the
warm-up had forward passes."""
# exercise: one_f_one_b_order
# diagnosis: wrong_shape


def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    return order
