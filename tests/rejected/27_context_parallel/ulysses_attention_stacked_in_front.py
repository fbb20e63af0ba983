# exercise: ulysses_attention
# diagnosis: exception
# hint: has to be the heads
import torch, torch.distributed as dist, torch.nn.functional as F


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    heads, t, d = q.shape
    x = torch.stack([q, k, v])
    came = torch.empty_like(x)
    dist.all_to_all_single(came, x)
    q, k, v = (
        came.view(n, 3, heads // n, t, d).permute(1, 2, 0, 3, 4).reshape(3, heads // n, n * t, d)
    )
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    out = out.view(heads // n, n, t, d).transpose(0, 1).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.view(heads, t, d)
