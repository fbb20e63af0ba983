"""The gradients that came in are as they were. An assignment to a name, or to an entry of the
list, changes no tensor: write into the gradient itself, as in grad.copy_(...) or grad /= count.
"""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    count = all_samples(samples)
    for grad in grads:
        grad = added_up(grad * samples) / count
