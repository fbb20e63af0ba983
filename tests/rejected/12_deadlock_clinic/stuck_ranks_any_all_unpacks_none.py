# exercise: stuck_ranks_any_all
# diagnosis: exception
# hint: before you unpack it
# not: one that is no key
def stuck_ranks_any_all(waits_for, gone):
    stuck = set(waits_for) - gone
    changed = True
    while changed:
        changed = False
        for r in list(stuck):
            how, peers = waits_for[r]
            live = [p not in stuck and p not in gone for p in peers]
            if any(live) if how == "any" else all(live):
                stuck.remove(r)
                changed = True
    return sorted(stuck)
