"""The two halves of an odd number of elements differ by one. The buffer has to be as long as the
half that you keep, since that is the one that comes."""
# exercise: halving_doubling_all_reduce
# diagnosis: size_mismatch
# or: FAR = True

FAR = False


def halve(x, op, rank, other_at, power):
    mine, done = x.view(-1), []
    for step in steps_of(power):
        low, high = halved(mine)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(given)
        exchange(given, came, other_at(step))
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    return mine, done
