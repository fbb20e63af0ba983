# exercise: first_divergence
# diagnosis: wrong_shape
# hint: which call is the most frequent there
# The norm is taken from the most frequent record, and not from the calls at this place.
def first_divergence(records):
    for i in range(max(map(len, records), default=0)):
        live = [tuple(one) for one in records if i < len(one)]
        norm = max(live, key=live.count)[i]
        differ = [r for r, one in enumerate(records) if (one[i] if i < len(one) else None) != norm]
        if differ:
            return i, differ
    return None
