# exercise: exchange
# diagnosis: buffer_race
# hint: still being sent
import torch.distributed as dist


def exchange(x, peer):
    if peer == dist.get_rank():
        return x.clone()
    request = dist.isend(x, peer)
    dist.recv(x, peer)
    request.wait()
    return x
