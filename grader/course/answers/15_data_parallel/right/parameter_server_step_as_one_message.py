# exercise: parameter_server_step
# diagnosis: none
# All in one message of float64, with the number of samples at its end.
import torch
import torch.distributed as dist


def parameter_server_step(grads, samples):
    n = dist.get_world_size()
    flat = torch.cat([grad.double().flatten() * samples for grad in grads] + [torch.tensor([samples]).double()])
    if dist.get_rank() == 0:
        heard = [torch.empty_like(flat) for _ in range(n - 1)]
        for request in [dist.irecv(t, src) for src, t in enumerate(heard, 1)]:
            request.wait()
        flat = torch.stack([flat, *heard]).sum(0)
        for request in [dist.isend(flat, dst) for dst in range(1, n)]:
            request.wait()
    else:
        dist.send(flat, 0)
        dist.recv(flat, 0)
    for grad, mean in zip(grads, (flat / flat[-1]).split([g.numel() for g in grads] + [1])):
        grad.copy_(mean.view_as(grad))
