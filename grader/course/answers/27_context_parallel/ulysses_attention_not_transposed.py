"""What arrives from another rank is its tokens, for your heads, so the whole is n × heads/n ×
tokens × dim. The sequence is ranks and tokens together, and these two have to be next to each
other before you reshape: transpose(0, 1) first."""
# exercise: ulysses_attention
# diagnosis: wrong_value


def gathered(x):
    heads, tokens, dim = x.shape
    came = torch.empty_like(x)
    dist.all_to_all_single(came, x)
    return came.reshape(heads // dist.get_world_size(), -1, dim)
