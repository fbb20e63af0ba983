# exercise: stuck_ranks
# diagnosis: wrong_shape
# hint: end at a rank that runs
def stuck_ranks(waits_for):
    out = []
    for r in waits_for:
        at = r
        for _ in range(len(waits_for) - 1):
            if at is None:
                break
            at = waits_for.get(at)
        if at is not None:
            out.append(r)
    return sorted(out)
