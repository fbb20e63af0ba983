"""Rank 0 has the means, and the others still have what they had: send it back."""

# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()
    count = all_samples(samples)
    for grad in grads:
        if rank:
            dist.send(grad * samples, 0)
        else:
            grad *= samples
            for src in range(1, n):
                heard = torch.empty_like(grad)
                dist.recv(heard, src)
                grad.add_(heard)
            grad.div_(count)
