"""Rank 0 has the means, and the others still have what they had: send it back."""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for grad in grads:
        if rank:
            dist.send(grad, 0)
        else:
            for src in range(1, n):
                heard = torch.empty_like(grad)
                dist.recv(heard, src)
                grad.add_(heard)
            grad.div_(n)
