"""A rank that stood aside combines the result with its own x, which is in it already: at the end, what
comes replaces x."""
# exercise: recursive_doubling_all_reduce, halving_doubling_all_reduce
# diagnosis: wrong_value
# or: ASIDE = "even"
# or: ASIDE = "odd"

ASIDE = "last"


def pairs_of(n):
    """Return the ranks that stand aside, each with the one that takes its x in."""
    power = 1 << (n.bit_length() - 1)
    if ASIDE == "last":
        return [(rank, rank - power) for rank in range(power, n)]
    firsts = range(0, 2 * (n - power), 2)
    return [(r, r + 1) if ASIDE == "even" else (r + 1, r) for r in firsts]


def folded_in(op, x, rank, pairs):
    for other, taker in pairs:
        if rank == other:
            dist.send(x, taker)
        elif rank == taker:
            came = torch.empty_like(x)
            dist.recv(came, other)
            combine(op, x, came)


def told(op, x, rank, pairs):
    for other, taker in pairs:
        if rank == other:
            came = torch.empty_like(x)
            dist.recv(came, taker)
            combine(op, x, came)
        elif rank == taker:
            dist.send(x, other)


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    pairs = pairs_of(n)
    folded_in(op, x, rank, pairs)
    others = sorted({*range(n)} - {other for other, _ in pairs})
    if rank in others:
        number = others.index(rank)
        came = torch.empty_like(x)
        for k in range(len(others).bit_length() - 1):
            exchange(x, came, others[number ^ (1 << k)])
            combine(op, x, came)
        divide(op, x, n)
    told(op, x, rank, pairs)


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    pairs = pairs_of(n)
    folded_in(op, x, rank, pairs)
    others = sorted({*range(n)} - {other for other, _ in pairs})
    if rank in others:
        number = others.index(rank)
        mine, done = x.view(-1), []
        for step in [1 << k for k in range(len(others).bit_length() - 1)]:
            low, high = mine.tensor_split(2)
            kept, given = (high, low) if number & step else (low, high)
            came = torch.empty_like(kept)
            exchange(given, came, others[number ^ step])
            combine(op, kept, came)
            done.append((step, kept, given))
            mine = kept
        divide(op, mine, n)
        for step, kept, given in reversed(done):
            exchange(kept, given, others[number ^ step])
    told(op, x, rank, pairs)
