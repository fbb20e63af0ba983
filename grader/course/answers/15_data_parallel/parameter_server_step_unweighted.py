"""The gradients are added up as they are, and divided by the samples of all ranks. They are means:
multiply each by its rank's samples first, and the sum is one over all samples."""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    count = all_samples(samples)
    for grad in grads:
        added_up(grad)
        grad /= count
