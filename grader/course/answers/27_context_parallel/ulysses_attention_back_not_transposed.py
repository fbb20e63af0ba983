"""all_to_all_single cuts the first dimension into n parts, one for each rank. On the way back your
result still has the heads there. View its tokens as n × tokens, and put the ranks first with
transpose(0, 1).
"""
# exercise: ulysses_attention
# diagnosis: exception


def given_back(out, shape):
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.view(shape)
