"""Cycles are missing: their members keep each other in the set of those that can go on. Begin with
the ranks that run, and let a rank in only when its wait is satisfied."""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape


def stuck_ranks_any_all(waits_for, gone):
    waiting = {r: w for r, w in waits_for.items() if w is not None and r not in gone}
    stuck, before = set(), None
    while stuck != before:
        before = set(stuck)
        for r, (how, peers) in waiting.items():
            if not satisfied(how, [p not in stuck and p not in gone for p in peers]):
                stuck.add(r)
    return sorted(stuck)
