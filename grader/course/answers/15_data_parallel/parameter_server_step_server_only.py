"""Only rank 0 has the means. They have to go back to the others, and each of these has to write them
into its own gradients, as recv(grad, 0) or grad.copy_(...) does.
"""
# exercise: parameter_server_step
# diagnosis: wrong_value
# or: SENT_BACK = True
# or: WEIGHED = "in place"
# or: SENT_BACK = True; WEIGHED = "in place"

SENT_BACK = False
WEIGHED = "apart"


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()
    count = all_samples(samples)
    for grad in grads:
        if rank == 0 or WEIGHED == "in place":
            grad *= samples
        total = grad.clone() if WEIGHED == "in place" else grad * samples
        if rank == 0:
            total = grad
        if SENT_BACK:
            added_up(total)
        elif rank:
            dist.send(total, 0)
        else:
            for src in range(1, n):
                heard = torch.empty_like(grad)
                dist.recv(heard, src)
                grad.add_(heard)
        if rank == 0:
            grad.div_(count)
