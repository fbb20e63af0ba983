# exercise: one_f_one_b_order
# diagnosis: wrong_shape
# hint: micro-batches that do not exist
def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = stages - stage - 1
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    order += [("backward", i) for i in range(max(micro_batches - warm_up, 0), micro_batches)]
    return order
