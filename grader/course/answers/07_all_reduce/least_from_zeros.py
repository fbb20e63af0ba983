"""The result is never above 0 for MIN, or never below 0 for MAX: 0, or a number close to it, takes
part, and is often smaller, or larger, than all the others. Begin with a rank's own numbers.
(torch.finfo(...).tiny is the smallest positive number; .min is the smallest of all.)"""
# exercise: all_reduce_rooted, all_reduce_sharded
# diagnosis: wrong_value
# or: FROM_ZEROS = (R.MIN,)
# or: FROM_ZEROS = (R.MAX,)

FROM_ZEROS = (R.MIN, R.MAX)


def all_reduce_rooted(x, op):
    collect(x, op)
    if dist.get_rank() == root_and_others()[0]:
        if op in FROM_ZEROS:
            combine(op, x, torch.zeros_like(x))
        if op == R.AVG:
            x /= dist.get_world_size()
    hand_out(x)


def all_reduce_sharded(x, op):
    mine = shared(x, op)
    if op in FROM_ZEROS:
        combine(op, mine, torch.zeros_like(mine))
    if op == R.AVG:
        mine /= dist.get_world_size()
    x.copy_(gathered(mine, x).view_as(x))
