"""Synchronized batch normalization on the CPU: torch has its kernels for GPUs alone.

What the layer communicates stays torch's own, so that its calls are recorded as they are on GPUs.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.nn.modules._functions import SyncBatchNorm
from torch.nn.parallel import DistributedDataParallel

__all__ = ["normalize_on_cpu"]


def normalize_on_cpu() -> None:
    """Let ``SyncBatchNorm`` take tensors of the CPU, and give it the kernels that it calls."""
    layer: Any = torch.nn.SyncBatchNorm
    plain = layer.__base__.forward

    def forward(self: Any, given: torch.Tensor) -> Any:
        group = self.process_group or dist.group.WORLD
        size = dist.get_world_size(group) if dist.is_initialized() else 1
        if not self.training or size == 1:
            return plain(self, given)
        self._check_input_dim(given)
        self._check_non_zero_input_channels(given)
        momentum, tracked = self.momentum or 0.0, (None, None)
        if self.track_running_stats:
            tracked = (self.running_mean, self.running_var)
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the average of all batches
                momentum = 1.0 / self.num_batches_tracked.item()
        return SyncBatchNorm.apply(  # type: ignore[no-untyped-call]
            given, self.weight, self.bias, *tracked, self.eps, momentum, group, size
        )

    layer.forward = forward
    parallel: Any = DistributedDataParallel
    parallel._passing_sync_batchnorm_handle = lambda *_: None  # it refuses those of the CPU
    for kernel in (
        batch_norm_stats, batch_norm_gather_stats_with_counts, batch_norm_elemt,
        batch_norm_backward_reduce, batch_norm_backward_elemt,
    ):  # fmt: skip
        setattr(torch, kernel.__name__, kernel)


def _channels(one: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return values of the channels in a shape that multiplies with the layer's input."""
    return one.view(1, -1, *[1] * (like.dim() - 2))


def _at_least_single(one: torch.Tensor) -> torch.Tensor:
    """Return a tensor in the precision of the kernels, which is at least single."""
    return one.float() if one.dtype in (torch.half, torch.bfloat16) else one


def _channel_sum(one: torch.Tensor) -> torch.Tensor:
    """Return the sum for each channel."""
    return one.transpose(0, 1).flatten(1).sum(1)


def batch_norm_stats(given: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean of each channel and the inverse of its standard deviation."""
    variance, mean = torch.var_mean(
        _at_least_single(given).transpose(0, 1).flatten(1), 1, correction=0
    )
    return mean, (variance + eps).rsqrt()


def batch_norm_gather_stats_with_counts(
    _: torch.Tensor, means: torch.Tensor, inverses: torch.Tensor,
    running_mean: torch.Tensor | None, running_var: torch.Tensor | None,
    momentum: float, eps: float, counts: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the same for the batches of all ranks together, and update the running averages."""
    weights, count = counts.view(-1, 1).to(means.dtype), counts.sum()
    mean = (weights * means).sum(0) / count
    variances = inverses**-2 - eps
    variance = (weights * (variances + (means - mean) ** 2)).sum(0) / count
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        unbiased = variance * count / (count - 1)
        running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return mean, (variance + eps).rsqrt()


def batch_norm_elemt(
    given: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
    mean: torch.Tensor, inverse: torch.Tensor, _: float,
) -> torch.Tensor:  # fmt: skip
    """Return the normalized input."""
    result = (_at_least_single(given) - _channels(mean, given)) * _channels(inverse, given)
    if weight is not None:
        result = result * _channels(weight, given)
    if bias is not None:
        result = result + _channels(bias, given)
    return result.to(given.dtype)


def batch_norm_backward_reduce(
    gradient: torch.Tensor, given: torch.Tensor, mean: torch.Tensor, inverse: torch.Tensor,
    weight: torch.Tensor | None, *_: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Return this rank's part of two sums over the batch, and the gradients of weight and bias."""
    gradient = _at_least_single(gradient)
    total = _channel_sum(gradient)
    product = _channel_sum(gradient * (_at_least_single(given) - _channels(mean, given)))
    dtype = total.dtype if weight is None else weight.dtype
    return total, product, (product * inverse).to(dtype), total.to(dtype)


def batch_norm_backward_elemt(
    gradient: torch.Tensor, given: torch.Tensor, mean: torch.Tensor, inverse: torch.Tensor,
    weight: torch.Tensor | None, total: torch.Tensor, product: torch.Tensor, counts: torch.Tensor,
) -> torch.Tensor:  # fmt: skip
    """Return the gradient of the input, of the two sums over all ranks' batches."""
    count = counts.sum()
    along = (_at_least_single(given) - _channels(mean, given)) * _channels(
        inverse**2 * product / count, given
    )
    scale = inverse if weight is None else inverse * weight
    result = (_at_least_single(gradient) - _channels(total / count, given) - along) * _channels(
        scale, given
    )
    return result.to(given.dtype)
