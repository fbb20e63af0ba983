"""0 is a rank, and false in Python: a condition such as `if rank` or `while rank` takes rank 0 for
`None`. Ask `is not None`."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
def stuck_ranks(waits_for):
    stuck = []
    for rank in waits_for:
        seen, at = set(), rank
        while at and at in waits_for and at not in seen:
            seen.add(at)
            at = waits_for[at]
        if at in seen:
            stuck.append(rank)
    return sorted(stuck)
