"""Where there are fewer samples than ranks, the sum is divided by n. It is a sum over all samples, however
few there are: divide by their number."""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    count = max(all_samples(samples), dist.get_world_size())
    for grad in grads:
        grad *= samples
        added_up(grad)
        grad /= count
