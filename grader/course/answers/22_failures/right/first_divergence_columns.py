# exercise: first_divergence
# diagnosis: none
# Columns first, then the verdict on each, and the first that is not empty.
ENDED = object()


def column(records, position):
    return [one[position] if len(one) > position else ENDED for one in records]


def outsiders(calls):
    best, votes = None, 0
    for call in calls:
        if call is not ENDED and calls.count(call) > votes:
            best, votes = call, calls.count(call)
    return [rank for rank, call in enumerate(calls) if call is ENDED or call != best]


def first_divergence(records):
    longest = max((len(one) for one in records), default=0)
    found = ((p, outsiders(column(records, p))) for p in range(longest))
    return next(((p, ranks) for p, ranks in found if ranks), None)
