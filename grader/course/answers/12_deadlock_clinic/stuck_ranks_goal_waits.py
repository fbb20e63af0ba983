# exercise: stuck_ranks
# diagnosis: wrong_shape
# hint: one step ahead
def stuck_ranks(waits_for):
    stuck = []
    for r, w in waits_for.items():
        if w is not None and waits_for.get(w) is not None:
            stuck.append(r)
    return sorted(stuck)
