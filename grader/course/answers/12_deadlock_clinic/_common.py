"""What the mistakes of stuck_ranks_any_all share."""


def satisfied(how, live):
    return any(live) if how == "any" else all(live)


def left_over(waits_for, gone, over=satisfied):
    """The ranks that are left when each whose wait is over has been taken out."""
    waiting = {r: w for r, w in waits_for.items() if w is not None and r not in gone}
    stuck = set(waiting)
    changed = True
    while changed:
        changed = False
        for r in list(stuck):
            how, peers = waiting[r]
            if over(how, [p not in stuck and p not in gone for p in peers]):
                stuck.remove(r)
                changed = True
    return sorted(stuck)
