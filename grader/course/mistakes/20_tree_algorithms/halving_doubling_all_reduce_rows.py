"""x has rows and columns here, and your halves are rows: an odd number of rows has no even halves.
Cut elements: x.view(-1).tensor_split(2)."""
# exercise: halving_doubling_all_reduce
# diagnosis: too_many_bytes
# earns: 0.5
# or: FAR = True

FAR = False


def halve(x, op, rank, other_at, power):
    mine, done = x, []
    for step in steps_of(power):
        low, high = halved(mine)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        exchange(given, came, other_at(step))
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    return mine, done
