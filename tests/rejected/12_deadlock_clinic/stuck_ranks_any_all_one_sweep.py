# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape
# hint: only once
def stuck_ranks_any_all(waits_for, gone):
    stuck = {r for r, w in waits_for.items() if w is not None and r not in gone}
    for r in sorted(stuck):
        how, peers = waits_for[r]
        live = [p not in stuck and p not in gone for p in peers]
        if any(live) if how == "any" else all(live):
            stuck.remove(r)
    return sorted(stuck)
