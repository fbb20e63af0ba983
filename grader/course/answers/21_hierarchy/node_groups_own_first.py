# exercise: node_groups
# diagnosis: order_mismatch
# hint: every rank makes the same groups in the same order
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    made = {}
    blocks = [tuple(range(i, i + ranks_per_node)) for i in range(0, n, ranks_per_node)]
    rails = [tuple(range(i, n, ranks_per_node)) for i in range(ranks_per_node)]
    for ranks in sorted(blocks + rails, key=lambda ranks: rank not in ranks):
        made.setdefault(ranks, dist.new_group(list(ranks)))
    return tuple(next(made[g] for g in kind if rank in g) for kind in (blocks, rails))
