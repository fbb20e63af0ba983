"""With fewer micro-batches than the warm-up takes, passes come of micro-batches that do not exist:
the warm-up has at most micro_batches passes."""
# exercise: one_f_one_b_order
# diagnosis: wrong_shape
# The warm-up counts the first forward pass of the pairs, and is not clipped.


def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = stages - stage
    order = [("forward", i) for i in range(warm_up)]
    for i in range(micro_batches - warm_up):
        order += [("backward", i), ("forward", i + warm_up)]
    return order + [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]
