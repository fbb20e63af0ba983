# exercise: one_f_one_b_order
# diagnosis: wrong_value
# hint: Every stage works like the last one
def one_f_one_b_order(stage, stages, micro_batches):
    return [(what, i) for i in range(micro_batches) for what in ("forward", "backward")]
