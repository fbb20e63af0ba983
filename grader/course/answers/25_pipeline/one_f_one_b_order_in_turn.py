"""Every stage works like the last one here: only one micro-batch is on its way at any time.
Earlier stages have to warm up first, so that the later ones have work."""
# exercise: one_f_one_b_order
# diagnosis: wrong_value


def one_f_one_b_order(stage, stages, micro_batches):
    return [(what, i) for i in range(micro_batches) for what in ("forward", "backward")]
