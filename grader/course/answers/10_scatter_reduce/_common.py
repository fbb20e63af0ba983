"""What the mistakes of this chapter share."""
# or: EXTREMES = "of Python"
# or: EXTREMES = "of Python, input last"
import torch

EXTREMES = "of torch"


def numbers_for(i, input, index, src, include_self):
    """Return what is reduced into a place: what input has there, and what src brings."""
    own, came = input[i : i + 1] if include_self else input[:0], src[: len(index)][index == i]
    return torch.cat([came, own] if EXTREMES == "of Python, input last" else [own, came])


def reduced(numbers, reduce):
    """Return the sum, the product, the mean or an extreme of numbers, in their own dtype."""
    if reduce in ("amax", "amin"):
        if EXTREMES != "of torch":
            return max(numbers) if reduce == "amax" else min(numbers)
        return numbers.amax() if reduce == "amax" else numbers.amin()
    if reduce == "prod":
        return numbers.prod(dtype=numbers.dtype)
    total = numbers.sum(dtype=numbers.dtype)
    return divided(total, len(numbers)) if reduce == "mean" else total


def sums(input, index, src, include_self):
    """Return the sums, and what a mean divides them by."""
    out = input.clone()
    for i in index.unique():
        out[i] = reduced(numbers_for(i, input, index, src, include_self), "sum")
    return out, (torch.bincount(index, minlength=len(input)) + int(include_self)).clamp(min=1)


def divided(total, count):
    """Return a mean, which of whole numbers is rounded down."""
    rounding = None if total.is_floating_point() or total.is_complex() else "floor"
    return torch.div(total, count, rounding_mode=rounding).to(total.dtype)
