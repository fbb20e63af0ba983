# exercise: one_f_one_b_order
# diagnosis: none
def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    order += [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]
    return order
