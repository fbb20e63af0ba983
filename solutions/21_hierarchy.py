# %% [markdown]
# # 21 · Hierarchy

# %%
import torch
import torch.distributed as dist

from grader import check

# %%
def node_groups(ranks_per_node: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """The group of this rank's node, and that of its place on all nodes."""
    ### BEGIN SOLUTION
    rank, n = dist.get_rank(), dist.get_world_size()
    for first in range(0, n, ranks_per_node):
        members = range(first, first + ranks_per_node)
        group = dist.new_group(list(members))
        if rank in members:
            node = group
    for place in range(ranks_per_node):
        members = range(place, n, ranks_per_node)
        group = dist.new_group(list(members))
        if rank in members:
            across = group
    return node, across
    ### END SOLUTION


groups_work = check(node_groups)
groups_work

# %%
def hierarchical_all_reduce(x: torch.Tensor, op: dist.ReduceOp, ranks_per_node: int) -> None:
    """x becomes the reduction over ranks; only shares of it cross between nodes."""
    ### BEGIN SOLUTION
    node, across = node_groups(ranks_per_node)
    average = op == dist.ReduceOp.AVG
    combine = dist.ReduceOp.SUM if average else op
    size = -(-x.numel() // ranks_per_node)
    padded = x.new_zeros(size * ranks_per_node)
    padded[: x.numel()] = x.flatten()
    mine = x.new_empty(size)
    dist.reduce_scatter_tensor(mine, padded, op=combine, group=node)
    dist.all_reduce(mine, op=combine, group=across)
    if average:
        mine /= dist.get_world_size()
    dist.all_gather_into_tensor(padded, mine, group=node)
    x.copy_(padded[: x.numel()].view_as(x))
    ### END SOLUTION


hierarchy_works = check(hierarchical_all_reduce)
hierarchy_works
