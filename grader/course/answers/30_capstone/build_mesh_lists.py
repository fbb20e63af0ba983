# exercise: build_mesh
# diagnosis: wrong_type
# hint: Lists of ranks are not groups yet
import torch.distributed as dist


def build_mesh(dp, tp, pp):
    rank = dist.get_rank()
    t, d, p = rank % tp, rank // tp % dp, rank // tp // dp
    return {
        "dp": [(p * dp + other) * tp + t for other in range(dp)],
        "tp": [(p * dp + d) * tp + other for other in range(tp)],
        "pp": [(other * dp + d) * tp + t for other in range(pp)],
    }
