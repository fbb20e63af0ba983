"""A walk that comes to a rank of an earlier walk ends there, as if that rank were running. It may be
stuck: begin each walk with an empty set."""
# exercise: stuck_ranks
# diagnosis: wrong_shape
# or: ADDS = "the start"
ADDS = "the whole walk"


def stuck_ranks(waits_for):
    stuck, seen = set(), set()
    for start in waits_for:
        walk, at = [], start
        while at in waits_for and at not in seen:
            seen.add(at)
            walk.append(at)
            at = waits_for[at]
        if at in walk:
            stuck.update(walk if ADDS == "the whole walk" else [start])
    return sorted(stuck)
