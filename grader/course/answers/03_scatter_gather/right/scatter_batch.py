# exercise: scatter
# diagnosis: none
import torch
import torch.distributed as dist


def scatter(out, chunks, src):
    rank = dist.get_rank()
    if rank == src:
        operations = [
            dist.P2POp(dist.isend, chunk, dst) for dst, chunk in enumerate(chunks) if dst != rank
        ]
        torch.add(chunks[rank], 0, out=out)
    else:
        operations = [dist.P2POp(dist.irecv, out, src)]
    for request in dist.batch_isend_irecv(operations) if operations else ():
        request.wait()
