"""The gradients are multiplied by samples, and the sum is divided by n. It is a sum over samples:
divide it by the samples of all ranks."""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    for grad in grads:
        grad *= samples
        added_up(grad)
        grad /= dist.get_world_size()
