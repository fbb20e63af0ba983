# exercise: first_divergence
# diagnosis: wrong_type
# hint: leave out the ranks whose lists have ended
def first_divergence(records):
    for position in range(max(map(len, records), default=0)):
        calls = {rank: one[position] for rank, one in enumerate(records) if position < len(one)}
        made = list(calls.values())
        norm = max(made, key=made.count)
        differ = [rank for rank, call in calls.items() if call != norm]
        if differ:
            return position, differ
    return None
