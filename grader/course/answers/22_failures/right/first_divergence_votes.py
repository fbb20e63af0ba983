# exercise: first_divergence
# diagnosis: none
# A while loop, a dict of votes, and a tuple for a list.
def first_divergence(records):
    position = 0
    while any(position < len(one) for one in records):
        voters = {}
        for rank, one in enumerate(records):
            call = tuple(one[position]) if position < len(one) else None
            voters.setdefault(call, []).append(rank)
        ended = voters.pop(None, [])
        norm = min(voters, key=lambda call: (-len(voters[call]), voters[call][0]))
        others = [rank for call, ranks in voters.items() if call != norm for rank in ranks]
        if ended or others:
            return position, tuple(sorted(ended + others))
        position += 1
