"""Both ranks of a pair keep the same half, and what one of them gives is not what the other keeps.
If one keeps the low half, its partner has to keep the high one: look at rank & step."""
# exercise: halving_doubling_all_reduce
# diagnosis: size_mismatch
# or: FAR = True

FAR = False


def halve(x, op, rank, other_at, power):
    mine, done = x.view(-1), []
    for step in steps_of(power):
        kept, given = halved(mine)
        came = torch.empty_like(kept)
        exchange(given, came, other_at(step))
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    return mine, done
