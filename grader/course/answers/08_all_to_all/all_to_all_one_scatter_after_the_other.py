# exercise: all_to_all
# diagnosis: too_many_rounds
# hint: one rank sends after another
# earns: 0.5
# not: through one rank | always idle
# An all-to-all is n scatters, one from every rank.
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = []
    for src in range(n):
        if src == rank:
            for dst in range(n):
                if dst != rank:
                    dist.send(chunks[dst], dst)
            result.append(chunks[rank].clone())
        else:
            out = torch.empty_like(chunks[rank])
            dist.recv(out, src)
            result.append(out)
    return result
