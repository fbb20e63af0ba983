# exercise: broadcast
# diagnosis: too_many_messages
# hint: n − 1 messages are enough
# not: has it already | more than once
# Each rank gets each element once, in two messages.
import torch.distributed as dist


def broadcast(x, src):
    for half in x.view(-1).tensor_split(2):
        if dist.get_rank() == src:
            for dst in range(dist.get_world_size()):
                if dst != src:
                    dist.send(half, dst)
        else:
            dist.recv(half, src)
