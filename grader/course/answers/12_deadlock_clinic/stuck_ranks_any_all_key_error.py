# exercise: stuck_ranks_any_all
# diagnosis: exception
# hint: one that is not a key of waits_for
# not: None in waits_for
def stuck_ranks_any_all(waits_for, gone):
    stuck = {r for r in waits_for if waits_for[r] is not None}
    for _ in waits_for:
        for r in list(stuck):
            how, peers = waits_for[r]
            live = [waits_for[p] is None or p not in stuck for p in peers]
            if any(live) if how == "any" else all(live):
                stuck.discard(r)
    return sorted(stuck - gone)
