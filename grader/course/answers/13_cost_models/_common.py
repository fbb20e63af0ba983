"""What the mistakes of this chapter share: how people treat the cases that are not the point."""
# or: ASKS = "for the latency"
# or: ASKS = "for nothing"
# or: NEGATIVE = "becomes zero"
# or: NEGATIVE = "stays"
import math

import torch.distributed as dist

ASKS = "for n"
NEGATIVE = "is held at zero"


def meet(n, alpha, beta, steps, parts):
    """Return where so many steps more cost as much as so many times the bytes."""
    if ASKS == "for n" and (n <= 3 or alpha == 0):
        return 0.0
    if ASKS == "for the latency" and steps * alpha <= 0:
        return 0.0
    if ASKS != "for nothing" and beta == 0:
        return math.inf
    return steps * alpha / (parts * beta)


def line(sizes, seconds):
    """Return the alpha and beta of the best line, whatever their signs."""
    x, y = sum(sizes) / len(sizes), sum(seconds) / len(seconds)
    beta = sum((s - x) * (t - y) for s, t in zip(sizes, seconds))
    beta /= sum((s - x) ** 2 for s in sizes)
    return y - beta * x, beta


def allowed(alpha, beta, sizes, seconds):
    """Return alpha and beta, or what takes their place if one of them is negative."""
    if NEGATIVE == "stays" or min(alpha, beta) >= 0:
        return alpha, beta
    if NEGATIVE == "becomes zero":
        return max(alpha, 0.0), max(beta, 0.0)
    if alpha < 0:
        return 0.0, sum(s * t for s, t in zip(sizes, seconds)) / sum(s * s for s in sizes)
    return sum(seconds) / len(seconds), 0.0
