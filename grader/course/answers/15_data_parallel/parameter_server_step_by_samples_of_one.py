"""The sum is divided by n times the samples of one rank, as if all ranks had as many. Add up the
samples of all ranks, and divide by that.
"""
# exercise: parameter_server_step
# diagnosis: wrong_value
# or: WHOSE = "rank 0's"; LEAST = 0
# or: WHOSE = "its own"
# or: WHOSE = "its own"; LEAST = 0

WHOSE = "rank 0's"
LEAST = 1


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()
    one = all_samples(samples if rank == 0 else 0) if WHOSE == "rank 0's" else samples
    for grad in grads:
        grad *= samples
        added_up(grad)
        grad /= max(one * n, LEAST)
