"""A matrix stays as it was, and only a vector is reduced: what you reduced was a copy of the
matrix. Write the result back, as in x.copy_(result)."""
# exercise: all_reduce_sharded
# diagnosis: wrong_value


def all_reduce_sharded(x, op):
    flat = x if x.dim() == 1 else torch.cat(list(x))
    mine = shared(flat, op)
    if op == R.AVG:
        mine /= dist.get_world_size()
    flat.copy_(gathered(mine, flat))
