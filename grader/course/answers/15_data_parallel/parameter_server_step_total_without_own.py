"""What you divide by leaves out the samples of rank 0. The server has samples as well, and they
count in the total."""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    others = all_samples(samples if dist.get_rank() else 0) or 1
    for grad in grads:
        grad *= samples
        added_up(grad)
        grad /= others
