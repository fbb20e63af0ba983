"""The results are in the order in which they were sent, sorted by expert. Put result i into the
place of token order[i]: torch.zeros_like(x).index_copy(0, order, back)."""
# exercise: expert_parallel
# diagnosis: wrong_value
# or: DROPPED = "zeros"
# or: DROPPED = "put back"

DROPPED = "left out"


def put_back(x, order, back):
    if len(back) == len(x) or DROPPED == "left out":
        return back
    places = order if DROPPED == "put back" else order.sort()[0]
    return torch.zeros_like(x).index_copy(0, places, back)
