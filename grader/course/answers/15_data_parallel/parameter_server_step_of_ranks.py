"""Every rank counts as much as any other: the sum is divided by n. A rank with more samples has to
count for more, so multiply its gradients by samples, and divide by the samples of all ranks."""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    all_samples(samples)
    for grad in grads:
        added_up(grad)
        grad /= dist.get_world_size()
