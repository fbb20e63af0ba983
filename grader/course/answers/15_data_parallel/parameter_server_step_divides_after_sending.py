"""Rank 0 has the means, and the others have the sums: divide on every rank, or before you send the
result back."""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    count = all_samples(samples)
    for grad in grads:
        grad *= samples
        added_up(grad)
        if dist.get_rank() == 0:
            grad /= count
