"""These are sums over all samples: the division by their number is missing."""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    for grad in grads:
        grad *= samples
        added_up(grad)
