"""Each rank divides by its own samples. The sum is over the samples of all ranks, so add up those as
well."""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    for grad in grads:
        grad *= samples
        added_up(grad)
        grad /= max(samples, 1)
