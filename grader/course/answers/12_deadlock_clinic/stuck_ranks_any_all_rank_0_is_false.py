"""0 is a rank, and false in Python: `any` and `all` over ranks, as over a list of numbers, take rank
0 for `False`. Give them conditions, such as `rank in live`."""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape
# or: ALL_TOO = True
ALL_TOO = False


def stuck_ranks_any_all(waits_for, gone):
    waiting = {r: w for r, w in waits_for.items() if w is not None and r not in gone}
    stuck = set(waiting)
    changed = True
    while changed:
        changed = False
        for r in list(stuck):
            how, peers = waiting[r]
            free = [p for p in peers if p not in stuck and p not in gone]
            over = len(free) == len(peers) and (all(free) or not ALL_TOO)
            if any(free) if how == "any" else over:
                stuck.remove(r)
                changed = True
    return sorted(stuck)
