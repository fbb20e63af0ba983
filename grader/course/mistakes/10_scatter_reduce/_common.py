"""What the mistakes of this chapter share."""
import torch

COMBINE = {
    "sum": torch.add,
    "mean": torch.add,
    "prod": torch.mul,
    "amax": torch.maximum,
    "amin": torch.minimum,
}


def divided(out, count):
    """Divide sums by counts, where there are any, as torch does."""
    count = torch.as_tensor(count).clamp(min=1)
    rounding = None if out.is_floating_point() else "floor"
    return torch.div(out, count, rounding_mode=rounding).to(out.dtype)
