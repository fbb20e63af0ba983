"""The first loss is right, and each step is too small by the number of micro-batches: the loss is
divided by it twice before backward, or the step once more. Of m micro-batches each counts with 1/m,
once."""
# exercise: train
# diagnosis: wrong_value


@torch.no_grad()
def step(stage, learning_rate):
    for weight in stage.parameters():
        weight -= learning_rate * weight.grad / MICRO_BATCHES[0]


MICRO_BATCHES = []


def one_f_one_b(stage, stages, micro_batches):
    MICRO_BATCHES[:] = [micro_batches]
    warm_up = min(stages - stage - 1, micro_batches)
    order = [("forward", i) for i in range(warm_up)]
    for i in range(warm_up, micro_batches):
        order += [("forward", i), ("backward", i - warm_up)]
    return order + [("backward", i) for i in range(micro_batches - warm_up, micro_batches)]
