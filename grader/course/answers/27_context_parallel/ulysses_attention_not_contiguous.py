# exercise: ulysses_attention
# diagnosis: exception
# hint: -
import torch, torch.distributed as dist, torch.nn.functional as F


def ulysses_attention(q, k, v, causal):
    n = dist.get_world_size()
    heads, t, d = q.shape

    def there(x):
        came = torch.empty_like(x)
        dist.all_to_all_single(came, x)
        return came.view(n, heads // n, t, d).transpose(0, 1).reshape(heads // n, n * t, d)

    out = F.scaled_dot_product_attention(there(q), there(k), there(v), is_causal=causal)
    out = out.view(heads // n, n, t, d).transpose(0, 1)
    back = torch.empty_like(out)
    dist.all_to_all_single(back, out)
    return back.reshape(heads, t, d)
