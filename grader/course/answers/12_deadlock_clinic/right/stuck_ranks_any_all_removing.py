# exercise: stuck_ranks_any_all
# diagnosis: none
def stuck_ranks_any_all(waits_for, gone):
    waiting = {r: w for r, w in waits_for.items() if w is not None and r not in gone}
    stuck = set(waiting)
    changed = True
    while changed:
        changed = False
        for r in list(stuck):
            how, peers = waiting[r]
            live = [p not in stuck and p not in gone for p in peers]
            if any(live) if how == "any" else all(live):
                stuck.remove(r)
                changed = True
    return sorted(stuck)
