# exercise: parameter_server_step
# diagnosis: wrong_value
# hint: The list holds new tensors
# says: in new tensors, and those that were in grads
import torch
import torch.distributed as dist


def parameter_server_step(grads, samples):
    rank, n = dist.get_rank(), dist.get_world_size()
    count = torch.tensor([float(samples)])
    totals = [count, *[grad * samples for grad in grads]]
    for total in totals:
        if rank:
            dist.send(total, 0)
            dist.recv(total, 0)
        else:
            for src in range(1, n):
                heard = torch.empty_like(total)
                dist.recv(heard, src)
                total += heard
            for dst in range(1, n):
                dist.send(total, dst)
    grads[:] = [total / count.item() for total in totals[1:]]
