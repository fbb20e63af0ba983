# exercise: one_f_one_b_order
# diagnosis: wrong_value
# hint: That is GPipe's order
# earns: 0.5
def one_f_one_b_order(stage, stages, micro_batches):
    return [(what, i) for what in ("forward", "backward") for i in range(micro_batches)]
