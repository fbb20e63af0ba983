# exercise: one_f_one_b_order
# diagnosis: wrong_value
# hint: The forward pass of a pair comes first
def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(micro_batches - warm_up):
        order += [("backward", i), ("forward", i + warm_up)]
    return order + [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]
