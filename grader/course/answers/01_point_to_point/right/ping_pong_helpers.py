# exercise: ping_pong
# diagnosis: none
import torch
import torch.distributed as dist

ACTIONS = {}


def role(rank):
    def register(function):
        ACTIONS[rank] = function
        return function

    return register


@role(0)
def serve(x):
    y = torch.zeros_like(x)
    for operation in (dist.P2POp(dist.isend, x, 1), dist.P2POp(dist.irecv, y, 1)):
        for request in dist.batch_isend_irecv([operation]):
            request.wait()
    return y


@role(1)
def return_ball(x):
    y = torch.zeros_like(x)
    dist.recv(y)
    dist.send(tensor=y + 1, dst=0)
    return x.clone()


def ping_pong(x):
    return ACTIONS.get(dist.get_rank(), torch.clone)(x)
