"""Only the last gradient that came in is left: every recv overwrites what rank 0 had. Receive into a
tensor of its own, and add that to the gradient.
"""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()
    count = all_samples(samples)
    for grad in grads:
        grad *= samples
        if rank:
            dist.send(grad, 0)
            dist.recv(grad, 0)
        else:
            for src in range(1, n):
                dist.recv(grad, src)
            for dst in range(1, n):
                dist.send(grad, dst)
        grad /= count
