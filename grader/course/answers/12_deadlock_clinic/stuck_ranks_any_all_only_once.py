"""You go through the ranks only once. A rank that is freed late may free others that you have
looked at before: repeat until a whole pass changes nothing."""
# exercise: stuck_ranks_any_all
# diagnosis: wrong_shape
# or: ORDER, AT_ONCE = list, True
# or: ORDER, AT_ONCE = list, False

#: In which order, and whether one that is freed counts as going on at once.
ORDER, AT_ONCE = sorted, True


def stuck_ranks_any_all(waits_for, gone):
    stuck = {r for r, w in waits_for.items() if w is not None and r not in gone}
    before = stuck if AT_ONCE else set(stuck)
    for r in ORDER(r for r in waits_for if r in stuck):
        how, peers = waits_for[r]
        if satisfied(how, [p not in before and p not in gone for p in peers]):
            stuck.remove(r)
    return sorted(stuck)
