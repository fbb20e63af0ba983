"""With fewer micro-batches than the warm-up takes, passes come of micro-batches that do not exist:
the warm-up has at most micro_batches passes."""
# exercise: one_f_one_b_order
# diagnosis: wrong_shape
# or: LEFT = "all"

LEFT = "those that there are"


def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = stages - stage - 1
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    first = micro_batches - warm_up
    first = first if LEFT == "all" else max(first, 0)
    return order + [("backward", i) for i in range(first, micro_batches)]
