"""Some ranks end with a partial result. Either the root answers them before it has heard from all
ranks, or the sum passes them by and the finished one is never handed out to them. Combine the x of
all ranks first, and then broadcast."""
# exercise: all_reduce_rooted
# diagnosis: wrong_value
# or: AVERAGES = "last"
# or: AVERAGES = "the root's"

AVERAGES = "each"


def all_reduce_rooted(x, op):
    root, others = root_and_others()
    if dist.get_rank() != root:
        dist.send(x, root)
        dist.recv(x, root)
        return
    buffer = torch.empty_like(x)
    for src in others:
        dist.recv(buffer, src)
        combine(op, x, buffer)
        divides = AVERAGES == "each" or AVERAGES == "last" and src == others[-1]
        dist.send(x / dist.get_world_size() if divides and op == R.AVG else x, src)
    if op == R.AVG:
        x /= dist.get_world_size()
