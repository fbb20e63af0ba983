# exercise: build_mesh
# diagnosis: wrong_type
# hint: Keep a group only where rank is among its members
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    n = dp * tp * pp
    mesh = {}
    for first in range(0, n, tp):
        mesh["tp"] = dist.new_group(list(range(first, first + tp)))
    for p in range(pp):
        for t in range(tp):
            first = p * dp * tp + t
            mesh["dp"] = dist.new_group(list(range(first, first + dp * tp, tp)))
    for first in range(dp * tp):
        mesh["pp"] = dist.new_group(list(range(first, n, dp * tp)))
    return mesh
