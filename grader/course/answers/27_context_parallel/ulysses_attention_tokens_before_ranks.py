"""Without a mask it is right, and with one the tokens are in the wrong order: token 0 of each rank
first, then token 1 of each. In the sequence all tokens of rank 0 come first: heads/n × n × tokens
× dim, before ranks and tokens become one dimension."""
# exercise: ulysses_attention
# diagnosis: wrong_value


def gathered(x):
    n = dist.get_world_size()
    heads, tokens, dim = x.shape
    came = torch.empty_like(x)
    dist.all_to_all_single(came, x)
    return came.view(n, heads // n, tokens, dim).permute(1, 2, 0, 3).reshape(heads // n, -1, dim)


def given_back(out, shape):
    n = dist.get_world_size()
    out = out.view(out.shape[0], -1, n, out.shape[2]).permute(2, 0, 1, 3).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.view(shape)
