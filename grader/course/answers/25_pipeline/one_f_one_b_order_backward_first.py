"""After the warm-up a backward pass comes before a forward pass here, so a stage waits for the
gradient while it could run a forward pass; and the last stage has nothing yet to go backward
with. The forward pass of a pair comes first."""
# exercise: one_f_one_b_order
# diagnosis: wrong_value


def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(micro_batches - warm_up):
        order += [("backward", i), ("forward", i + warm_up)]
    return order + [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]
