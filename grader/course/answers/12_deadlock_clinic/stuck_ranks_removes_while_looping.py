# exercise: stuck_ranks
# diagnosis: exception
# hint: loop over a copy
# not: no key
def stuck_ranks(waits_for):
    left = dict(waits_for)
    for _ in waits_for:
        for rank in left:
            if left[rank] not in left:
                del left[rank]
    return sorted(left)
