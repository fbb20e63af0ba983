# exercise: stuck_ranks
# diagnosis: wrong_shape
# hint: 0 is a rank, and false in
# `waits_for.get(r) or None`-like: rank 0 as a target is taken for running
def stuck_ranks(waits_for):
    left = {k: v for k, v in waits_for.items() if v}
    while go := [k for k, v in left.items() if v not in left]:
        for k in go:
            del left[k]
    return sorted(left)
