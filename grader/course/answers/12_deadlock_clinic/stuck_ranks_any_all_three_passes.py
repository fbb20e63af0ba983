# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape
# hint: add every rank whose wait they satisfy
# Three passes are enough for short chains, and not for long ones.
def stuck_ranks_any_all(waits_for, gone):
    waiting = {r: w for r, w in waits_for.items() if w is not None and r not in gone}
    stuck = set(waiting)
    for _ in range(3):
        stuck = {
            r
            for r in stuck
            if not (any if waiting[r][0] == "any" else all)(
                p not in stuck and p not in gone for p in waiting[r][1]
            )
        }
    return sorted(stuck)
