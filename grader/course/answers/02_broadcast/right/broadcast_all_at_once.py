# exercise: broadcast
# diagnosis: none
from torch.distributed import P2POp, batch_isend_irecv, get_rank, get_world_size, irecv, isend


def broadcast(x, src):
    if get_rank() == src:
        others = [r for r in range(get_world_size()) if r != src]
        operations = [P2POp(isend, x, dst) for dst in others]
    else:
        operations = [P2POp(irecv, x, src)]
    if operations:
        for request in batch_isend_irecv(operations):
            request.wait()
