# exercise: fit_alpha_beta
# diagnosis: wrong_value
# hint: Use dtype=torch.float64
import torch


def fit_alpha_beta(sizes, seconds):
    s, t = torch.tensor(sizes).float(), torch.tensor(seconds)
    design = torch.stack([torch.ones_like(s), s], 1)
    alpha, beta = torch.linalg.lstsq(design, t[:, None]).solution.flatten().tolist()
    if alpha < 0:
        return 0.0, float(s @ t / (s @ s))
    if beta < 0:
        return float(t.mean()), 0.0
    return alpha, beta
