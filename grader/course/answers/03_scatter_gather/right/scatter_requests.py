# exercise: scatter
# diagnosis: none
import torch.distributed as dist


def scatter(out, chunks, src):
    if chunks is None:
        dist.irecv(out, src).wait()
        return
    requests = [dist.isend(chunk, dst) for dst, chunk in enumerate(chunks) if dst != src]
    out[:] = chunks[src]
    for request in requests:
        request.wait()
