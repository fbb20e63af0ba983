"""all_to_all_single cuts the first dimension into n parts, one for each rank: on the way there
that has to be the heads, and on the way back the ranks whose tokens they are. (If q, k and v
travel as one tensor, stack them along another dimension.)"""
# exercise: ulysses_attention
# diagnosis: exception


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    heads, tokens, dim = q.shape
    x = torch.stack([q, k, v])
    came = torch.empty_like(x)
    dist.all_to_all_single(came, x)
    came = came.view(n, 3, heads // n, tokens, dim).permute(1, 2, 0, 3, 4)
    return given_back(attend(*came.reshape(3, heads // n, n * tokens, dim), causal), q.shape)
