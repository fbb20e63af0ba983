# exercise: build_mesh
# diagnosis: wrong_value
# hint: consecutive ranks
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    rank, n = dist.get_rank(), dp * tp * pp
    mesh = {}
    for name, size in (("dp", dp), ("tp", tp), ("pp", pp)):
        for first in range(0, n, size):
            row = list(range(first, first + size))
            group = dist.new_group(row)
            if rank in row:
                mesh[name] = group
    return mesh
