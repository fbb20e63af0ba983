"""The sorting is done a second time instead of undone. back[i] is the result of token order[i], so
it goes to place order[i]: result[order] = back, not back[order]."""
# exercise: expert_parallel
# diagnosis: wrong_value
# or: DROPPED = "seen to"
# or: DROPPED = "sorted along"

DROPPED = "not seen to"


def put_back(x, order, back):
    if len(back) == len(x) or DROPPED == "not seen to":
        return back[order]
    if DROPPED == "sorted along":
        kept = torch.isin(torch.arange(len(x)), order)
        whole = torch.cat([torch.zeros_like(x[~kept]), back])
        return whole[torch.cat([(~kept).nonzero().flatten(), order])]
    return torch.zeros_like(x).index_copy(0, order, back)
