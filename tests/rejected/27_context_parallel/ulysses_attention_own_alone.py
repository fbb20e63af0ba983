# exercise: ulysses_attention
# diagnosis: wrong_value
# hint: own tokens alone
import torch.nn.functional as F


def ulysses_attention(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
