"""The results are in the order in which they were sent, sorted by expert. Put result i into the
place of token order[i]: torch.zeros_like(x).index_copy(0, order, back)."""
# exercise: expert_parallel
# diagnosis: wrong_value
# or: DROPPED = "zeros"
# or: DROPPED = "put back"
# or: DROPPED = "put back, or else zeros"
# or: DROPPED = "behind"

DROPPED = "left out"


def put_back(x, order, back):
    if DROPPED == "behind":
        return torch.cat([back, torch.zeros_like(x[len(back) :])])
    if DROPPED == "left out" or (len(back) == len(x) and "else" not in DROPPED):
        return back
    put = DROPPED == "put back" or len(back) == len(x)
    places = order if put else order.sort()[0]
    return torch.zeros_like(x).index_copy(0, places, back)
