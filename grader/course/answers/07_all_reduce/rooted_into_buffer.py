"""The result reaches every rank, but it is received into another tensor and stays there. Receive
it into x itself."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value


def all_reduce_rooted(x, op):
    root = root_and_others()[0]
    collect(x, op)
    if op == R.AVG and dist.get_rank() == root:
        x /= dist.get_world_size()
    hand_out(x if dist.get_rank() == root else torch.empty_like(x))
