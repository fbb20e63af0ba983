# exercise: ulysses_attention
# diagnosis: wrong_value
# hint: token 0 of each rank first
import torch, torch.distributed as dist, torch.nn.functional as F


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    heads, t, d = q.shape

    def there(x):
        came = torch.empty_like(x)
        dist.all_to_all_single(came, x)
        return came.view(n, heads // n, t, d).permute(1, 2, 0, 3).reshape(heads // n, n * t, d)

    out = F.scaled_dot_product_attention(there(q), there(k), there(v), is_causal=causal)
    out = out.view(heads // n, t, n, d).permute(2, 0, 1, 3).contiguous()
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.view(heads, t, d)
