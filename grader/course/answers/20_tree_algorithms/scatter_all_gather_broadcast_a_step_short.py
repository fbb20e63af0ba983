"""The all-gather is a step short: each rank lacks the share that would come last. There are n − 1
steps."""
# exercise: scatter_all_gather_broadcast
# diagnosis: wrong_value
# or: BY = "rank"
# or: CUT = "even"
# or: BY = "rank"; CUT = "even"
# or: CUT = "padded"
# or: BY = "rank"; CUT = "padded"
# or: CUT = "padded"; LACKING = "what it was"
# or: BY = "rank"; CUT = "padded"; LACKING = "what it was"

BY = "place"
CUT = "tensor_split"
#: What a padded copy holds where nothing comes.
LACKING = "zeros"


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = src if BY == "place" else 0
    v = (rank - first) % n
    shares = x.view(-1).tensor_split(n)
    if CUT == "even":
        edges = [i * x.numel() // n for i in range(n + 1)]
        shares = [x.view(-1)[edges[i] : edges[i + 1]] for i in range(n)]
    elif CUT == "padded":
        size = -(-x.numel() // n)
        copy = x.new_zeros(size * n)
        if rank == src or LACKING == "what it was":
            copy[: x.numel()] = x.view(-1)
        shares = [copy[i * size : (i + 1) * size] for i in range(n)]
    if rank == src:
        for other in range(n):
            if other != src:
                dist.send(shares[(other - first) % n], other)
    else:
        dist.recv(shares[v], src)
    for s in range(n - 2):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)
        request.wait()
    if CUT == "padded":
        x.copy_(copy[: x.numel()].view_as(x))
