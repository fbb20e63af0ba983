"""The elements of a transposed matrix are not stored in order, so it has no view as one row. flatten()
copies where it must; then write the result back into x."""

# exercise: all_reduce_sharded
# diagnosis: exception


def all_reduce_sharded(x, op):
    flat = x.view(-1)
    mine = shared(flat, op)
    if op == R.AVG:
        mine /= dist.get_world_size()
    flat.copy_(gathered(mine, flat))
