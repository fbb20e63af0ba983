# exercise: build_mesh
# diagnosis: none
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    """Group the ranks by the two coordinates that stay, in dictionaries."""
    rank = dist.get_rank()
    mesh = {}
    for axis, name in enumerate(("pp", "dp", "tp")):
        rows = {}
        for other in range(dp * tp * pp):
            place = [other // tp // dp, other // tp % dp, other % tp]
            place[axis] = None
            rows.setdefault(tuple(place), []).append(other)
        for row in rows.values():
            group = dist.new_group(row)
            if rank in row:
                mesh[name] = group
    return mesh
