# exercise: tutorial_all_reduce
# diagnosis: input_changed
# hint: send has to stay
# Uses send as the travelling buffer
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    n, r = dist.get_world_size(), dist.get_rank()
    recv.copy_(send)
    nxt = torch.empty_like(send)
    for _ in range(n - 1):
        w = dist.isend(send, (r + 1) % n)
        dist.recv(nxt, (r - 1) % n)
        w.wait()
        recv += nxt
        send.copy_(nxt)
