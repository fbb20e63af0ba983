# exercise: fit_alpha_beta
# diagnosis: none
# Which of those that are allowed has the least squares?
import torch


def fit_alpha_beta(sizes, seconds):
    s = torch.tensor(sizes, dtype=torch.float64)
    t = torch.tensor(seconds, dtype=torch.float64)
    ones = torch.ones_like(s)
    free = torch.linalg.lstsq(torch.stack([ones, s], 1), t[:, None]).solution.flatten().tolist()
    candidates = [tuple(free), (0.0, float(s @ t / (s @ s))), (float(t.mean()), 0.0), (0.0, 0.0)]
    allowed = [c for c in candidates if min(c) >= 0]
    return min(allowed, key=lambda c: float(((c[0] + c[1] * s - t) ** 2).sum()))
