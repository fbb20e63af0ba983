"""The heads of the result are in another order. Rank j computes the heads j·heads/n, j·heads/n +
1, …, so what comes back is n × heads/n already in the order of q: do not transpose it."""
# exercise: ulysses_attention
# diagnosis: wrong_value


def given_back(out, shape):
    n = dist.get_world_size()
    out = out.view(out.shape[0], n, -1, out.shape[2]).transpose(0, 1).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.transpose(0, 1).reshape(shape)
