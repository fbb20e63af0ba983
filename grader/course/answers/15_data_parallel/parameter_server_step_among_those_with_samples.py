"""Every rank that has samples counts as much as any other: that is the plain mean of these ranks.
One with more samples has to count for more: multiply each gradient by its rank's samples, and
divide by the samples of all ranks."""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    holders = added_up(torch.tensor([float(samples > 0)])).item()
    for grad in grads:
        grad *= samples > 0
        added_up(grad)
        grad /= holders
