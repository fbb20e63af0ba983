"""new_group is a collective of the whole world: every rank makes the same groups in the same
order, including those that it is not in. Or it makes only its own, with
use_local_synchronization=True."""
# exercise: hierarchical_all_reduce
# diagnosis: order_mismatch


def node_groups(ranks_per_node):
    rank = dist.get_rank()
    node = dist.new_group(blocks_of(ranks_per_node)[rank // ranks_per_node])
    return node, dist.new_group(rails_of(ranks_per_node)[rank % ranks_per_node])
