# exercise: stuck_ranks
# diagnosis: wrong_shape
# hint: begin each walk with an empty set
def stuck_ranks(waits_for):
    stuck, seen = set(), set()
    for r in waits_for:
        path = []
        while r is not None and r not in seen:
            seen.add(r)
            path.append(r)
            r = waits_for.get(r)
        if r is not None and r in path:
            stuck.update(path)
    return sorted(stuck)
