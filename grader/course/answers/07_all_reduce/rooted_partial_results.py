"""Some ranks end with a partial result: the root answers each of them before it has heard from all.
Combine the x of all ranks first, and then broadcast, in a loop of its own."""
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
