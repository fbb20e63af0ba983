"""A walk that comes to a rank of an earlier walk is taken for a cycle, although that rank may lead to
one that runs. Only a rank that is met twice on the same walk is in a cycle: begin each walk with an
empty set.
"""
# exercise: stuck_ranks
# diagnosis: wrong_shape


def stuck_ranks(waits_for):
    stuck, seen = [], set()
    for start in waits_for:
        at = start
        while at is not None and at not in seen:
            seen.add(at)
            at = waits_for.get(at)
        if at is not None:
            stuck.append(start)
    return sorted(stuck)
