"""What comes back is taken for tokens × heads × dim. Each rank sends its heads of your tokens, so it is n
× heads/n × tokens × dim, with the heads in order: view it as heads × tokens × dim, and transpose
nothing."""
# exercise: ulysses_attention
# diagnosis: wrong_value


def given_back(out, shape):
    n, (heads, tokens, dim) = dist.get_world_size(), shape
    out = out.view(out.shape[0], n, -1, out.shape[2]).transpose(0, 1).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.view(tokens, heads, dim).transpose(0, 1).contiguous()
