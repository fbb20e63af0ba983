# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: nan or infinite
import torch


def fit_alpha_beta(sizes, seconds):
    # float16 holds nothing above 65504, and the squares are larger
    s, t, n = torch.tensor(sizes).half(), torch.tensor(seconds).half(), len(sizes)
    determinant = n * (s * s).sum() - s.sum() ** 2
    alpha = ((s * s).sum() * t.sum() - s.sum() * (s * t).sum()) / determinant
    beta = (n * (s * t).sum() - s.sum() * t.sum()) / determinant
    return alpha.item(), beta.item()
