"""On the way back heads and tokens are mixed up. Rank j is to get its own tokens, for all of your
heads: view the result as heads/n × n × tokens × dim, and transpose the first two before it is cut
into n pieces."""
# exercise: ulysses_attention
# diagnosis: wrong_value


def given_back(out, shape):
    out = out.reshape(shape)
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back
