# exercise: first_divergence
# diagnosis: wrong_value
# hint: several calls are equally frequent
def first_divergence(records):
    for pos in range(max(map(len, records), default=0)):
        calls = [r[pos] if pos < len(r) else None for r in records]
        made = [c for c in calls if c is not None]
        norm = max(set(made), key=made.count)
        bad = [r for r, c in enumerate(calls) if c != norm]
        if bad:
            return pos, bad
    return None
