"""A rank that is not a key of waits_for, and has not gone, runs: nothing says that it waits. It
satisfies those that wait for it.
"""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape


def stuck_ranks_any_all(waits_for, gone):
    free = {r for r, w in waits_for.items() if w is None and r not in gone}
    changed = True
    while changed:
        changed = False
        for r, wait in waits_for.items():
            if wait is None or r in free or r in gone:
                continue
            how, peers = wait
            if (any if how == "any" else all)([p in free for p in peers]):
                free.add(r)
                changed = True
    return sorted(r for r in waits_for if r not in free and r not in gone)
