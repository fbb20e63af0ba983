"""Zeros take part in every reduction, as if the total had begun with them. They change MIN, MAX and
PRODUCT: begin with a rank's own numbers."""
# exercise: all_reduce_rooted, all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    collect(x, op)
    if dist.get_rank() == root_and_others()[0]:
        combine(op, x, torch.zeros_like(x))
        if op == R.AVG:
            x /= dist.get_world_size()
    hand_out(x)


def all_reduce_sharded(x, op):
    mine = shared(x, op)
    combine(op, mine, torch.zeros_like(mine))
    if op == R.AVG:
        mine /= dist.get_world_size()
    x.copy_(gathered(mine, x).view_as(x))
