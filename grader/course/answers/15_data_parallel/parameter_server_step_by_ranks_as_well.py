"""These are the means, divided by the number of ranks once more. The sum over all samples is divided
by the number of all samples, and by nothing else.
"""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    count = all_samples(samples)
    for grad in grads:
        grad *= samples
        added_up(grad)
        grad /= count * dist.get_world_size()
