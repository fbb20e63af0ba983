"""The sums are divided by n − 1. There are n gradients: rank 0 has a gradient, too."""
# exercise: parameter_server_step
# diagnosis: wrong_value
# not: division by n is missing


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for grad in grads:
        if rank:
            dist.send(grad, 0)
            dist.recv(grad, 0)
        else:
            heard = torch.empty_like(grad)
            for src in range(1, n):
                dist.recv(heard, src)
                grad += heard
            grad /= max(n - 1, 1)
            for dst in range(1, n):
                dist.send(grad, dst)
