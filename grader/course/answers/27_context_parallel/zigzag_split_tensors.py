# exercise: zigzag_split
# diagnosis: wrong_value
# hint: as Python ints
import torch


def zigzag_split(tokens, n):
    chunk = torch.arange(tokens).chunk(2 * n)
    return [list(torch.cat([chunk[r], chunk[2 * n - 1 - r]])) for r in range(n)]
