"""Only the last gradient that came in is left, divided by n: every recv overwrites what rank 0
had. Receive into a tensor of its own, and add that to the gradient.
"""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for grad in grads:
        if rank:
            dist.send(grad, 0)
            dist.recv(grad, 0)
        else:
            for src in range(1, n):
                dist.recv(grad, src)
            grad /= n
            for dst in range(1, n):
                dist.send(grad, dst)
