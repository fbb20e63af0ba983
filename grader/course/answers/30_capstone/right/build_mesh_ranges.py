# exercise: build_mesh
# diagnosis: none
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    """Three loops over ranges with a step."""
    rank, n = dist.get_rank(), dp * tp * pp
    mesh = {}

    def make(name, row):
        group = dist.new_group(list(row))
        if rank in row:
            mesh[name] = group

    for first in range(0, n, tp):
        make("tp", range(first, first + tp))
    for p in range(pp):
        for t in range(tp):
            first = p * dp * tp + t
            make("dp", range(first, first + dp * tp, tp))
    for first in range(dp * tp):
        make("pp", range(first, n, dp * tp))
    return mesh
