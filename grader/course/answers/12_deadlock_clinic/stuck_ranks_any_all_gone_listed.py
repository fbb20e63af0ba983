# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape
# hint: it is done
def stuck_ranks_any_all(waits_for, gone):
    waiting = {r: w for r, w in waits_for.items() if w is not None}
    stuck = set(waiting)
    while True:
        pass
        now = set()
        for r, (how, peers) in waiting.items():
            live = [p not in stuck and p not in gone for p in peers]
            if not (any(live) if how == "any" else all(live)):
                now.add(r)
        if now == stuck:
            break
        stuck = now
    return sorted(stuck)
