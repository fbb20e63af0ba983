"""Rank 0 adds its own gradients as they are. They count like those of the others: times the number
of rank 0's samples.
"""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    every = all_samples(samples)
    for grad in grads:
        if dist.get_rank():
            grad *= samples
        added_up(grad)
        grad /= every
