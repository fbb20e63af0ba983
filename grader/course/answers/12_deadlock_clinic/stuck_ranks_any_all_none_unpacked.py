"""A rank that runs has None in waits_for, in place of a kind of wait and a list: check for that
before you unpack it or look into it."""
# exercise: stuck_ranks_any_all
# diagnosis: exception
# or: GONE_FIRST, UNPACKS = False, True
# or: GONE_FIRST, UNPACKS = True, False
# or: GONE_FIRST, UNPACKS = False, False

#: Whether the ranks that have returned are left out before, and how a wait is taken apart.
GONE_FIRST, UNPACKS = True, True


def stuck_ranks_any_all(waits_for, gone):
    stuck = [r for r in waits_for if not (GONE_FIRST and r in gone)]
    changed = True
    while changed:
        changed = False
        for r in list(stuck):
            if UNPACKS:
                how, peers = waits_for[r]
            else:
                how, peers = waits_for[r][0], waits_for[r][1]
            live = [p not in stuck and p not in gone for p in peers]
            if r not in gone and satisfied(how, live):
                stuck.remove(r)
                changed = True
    return sorted(r for r in stuck if r not in gone)
