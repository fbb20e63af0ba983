# exercise: node_groups
# diagnosis: forbidden_call
# hint: new_group is the only collective
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = rank // ranks_per_node * ranks_per_node
    mine = (
        list(range(first, first + ranks_per_node)),
        list(range(rank % ranks_per_node, n, ranks_per_node)),
    )
    wanted = [None] * n
    dist.all_gather_object(wanted, mine)
    made = {str(ranks): dist.new_group(ranks) for pair in wanted for ranks in pair}
    return made[str(mine[0])], made[str(mine[1])]
