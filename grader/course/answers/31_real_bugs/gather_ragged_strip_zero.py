# exercise: gather_ragged
# diagnosis: wrong_shape
# hint: Rows that hold nothing but zeros are
# Strips zero rows instead of counts
import torch
import torch.distributed as dist


def gather_ragged(x):
    n = dist.get_world_size()
    c = torch.zeros(n, dtype=torch.int64)
    dist.all_gather_into_tensor(c, torch.tensor([x.shape[0]]))
    pad = x.new_zeros((int(c.max()), *x.shape[1:]))
    pad[: len(x)] = x
    out = [torch.empty_like(pad) for _ in range(n)]
    dist.all_gather(out, pad)
    return [o[o.reshape(len(o), -1).ne(0).any(1)] if o.numel() else o for o in out]
