"""A rank without samples returns at once, and rank 0 waits for it. It has to send and receive like
the others, although its gradients count for nothing."""
# exercise: parameter_server_step
# diagnosis: deadlock
# or: LEAVES = "all but the server"

LEAVES = "all"


def parameter_server_step(grads, samples):
    if samples == 0 and (LEAVES == "all" or dist.get_rank()):
        return
    count = all_samples(samples)
    for grad in grads:
        grad *= samples
        added_up(grad)
        grad /= count
