# exercise: one_f_one_b_order
# diagnosis: wrong_value
# hint: shorter from stage to stage
# earns: 0.5
def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = min(stages - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    order += [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]
    return order
