# exercise: build_mesh
# diagnosis: none
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    """Each rank makes its own three groups, and no others."""
    rank = dist.get_rank()
    t, d, p = rank % tp, rank // tp % dp, rank // tp // dp
    rows = {
        "dp": [(p * dp + other) * tp + t for other in range(dp)],
        "tp": [(p * dp + d) * tp + other for other in range(tp)],
        "pp": [(other * dp + d) * tp + t for other in range(pp)],
    }
    return {name: dist.new_group(row, use_local_synchronization=True) for name, row in rows.items()}
