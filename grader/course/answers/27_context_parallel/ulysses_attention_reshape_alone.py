"""A reshape does not move anything, so heads and ranks are mixed up. What comes is n × heads/n × tokens
× dim: view it so, transpose the first two, and only then let ranks and tokens become one dimension.
The way back takes the same steps backwards."""
# exercise: ulysses_attention
# diagnosis: wrong_value


def gathered(x):
    heads, tokens, dim = x.shape
    came = torch.empty_like(x)
    dist.all_to_all_single(came, x)
    return came.reshape(heads // dist.get_world_size(), -1, dim)


def given_back(out, shape):
    out = out.reshape(shape).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back
