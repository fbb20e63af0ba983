"""In the steady state each forward pass is followed by the backward pass of the same micro-batch, and
those of the warm-up wait until the end. The first gradient that comes is that of micro-batch 0: go
backward with the oldest one in flight."""
# exercise: one_f_one_b_order
# diagnosis: wrong_value
# or: DOWN = True

#: Whether those of the warm-up go backward in reverse.
DOWN = False


def one_f_one_b_order(stage, stages, micro_batches):
    warm_up = list(range(min(stages - stage - 1, micro_batches)))
    order = [("forward", i) for i in warm_up]
    for i in range(len(warm_up), micro_batches):
        order += [("forward", i), ("backward", i)]
    return order + [("backward", i) for i in (reversed(warm_up) if DOWN else warm_up)]
