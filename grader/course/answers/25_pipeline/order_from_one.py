"""Micro-batches are counted from 0, so the last one is micro_batches − 1."""
# exercise: gpipe_order, one_f_one_b_order
# diagnosis: wrong_value


def gpipe_order(stage, stages, micro_batches):
    return [(what, i + 1) for what, i in all_forward_first(micro_batches)]


def one_f_one_b_order(stage, stages, micro_batches):
    return [(what, i + 1) for what, i in alternating(stages - stage - 1, micro_batches)]
