"""Micro-batches are counted from 0, so the last one is micro_batches − 1."""
# exercise: gpipe_order, one_f_one_b_order
# diagnosis: wrong_value
# or: DOWN = True

DOWN = False


def gpipe_order(stage, stages, micro_batches):
    order = all_forward_first(micro_batches)
    if DOWN:
        order[micro_batches:] = order[: micro_batches - 1 : -1]
    return [(what, i + 1) for what, i in order]


def one_f_one_b_order(stage, stages, micro_batches):
    return [(what, i + 1) for what, i in alternating(stages - stage - 1, micro_batches)]
