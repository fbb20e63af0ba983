"""transpose and permute only change how a tensor is read, and a message needs its numbers in one
piece in memory, in that order: call .contiguous() before you send it."""
# exercise: ulysses_attention
# diagnosis: exception


def given_back(out, shape):
    out = out.view(out.shape[0], dist.get_world_size(), -1, out.shape[2]).transpose(0, 1)
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.reshape(shape)
