"""The gradients that came in are as they were. An assignment to a name, or to an entry of the
list, changes no tensor: write into the gradient itself, as in grad.copy_(...) or grad /= n.
"""
# exercise: parameter_server_step
# diagnosis: wrong_value


def parameter_server_step(grads):
    rank, n = dist.get_rank(), dist.get_world_size()
    for grad in grads:
        if rank:
            dist.send(grad, 0)
            grad = torch.empty_like(grad)
            dist.recv(grad, 0)
        else:
            for src in range(1, n):
                heard = torch.empty_like(grad)
                dist.recv(heard, src)
                grad = grad + heard
            grad = grad / n
            for dst in range(1, n):
                dist.send(grad, dst)
