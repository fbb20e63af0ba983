"""The tensors of a collective as its algorithm wants them: flat, contiguous, of the right size."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.core.values import dtype_name
from grader.simulation.algorithms.blocks import Blocks, even, of_sizes

__all__ = ["fill", "flat", "pieces", "require_length", "require_one_each"]

#: What gloo's collectives take; torch hands complex numbers over as pairs of real ones.
_TAKEN = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int64,
    torch.int8,
    torch.uint8,
    torch.bool,
)


def flat(tensor: torch.Tensor, what: str) -> torch.Tensor:
    """A tensor's elements in one dimension, in the same memory.

    Raises:
        ValueError: gloo would not take it, or not as it is.
    """
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise ValueError(f"{what} needs a dense CPU tensor here, not one on {tensor.device}")
    if tensor.dtype not in _TAKEN:
        known = ", ".join(map(dtype_name, _TAKEN))
        raise ValueError(f"{what} takes {known}, as gloo does; not {dtype_name(tensor.dtype)}")
    if not tensor.is_contiguous():
        raise ValueError(f"{what} needs a contiguous tensor; call .contiguous() first")
    return tensor.detach().view(-1)


def fill(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """Put flat data into a tensor of any strides."""
    tensor.detach().copy_(data.view(tensor.shape))


def require_length(what: str, tensor: torch.Tensor, like: torch.Tensor, length: int) -> None:
    """Make sure that a tensor has so many elements, and the dtype of another.

    Raises:
        ValueError: it has not.
    """
    if tensor.numel() != length or tensor.dtype != like.dtype:
        raise ValueError(
            f"{what} has {tensor.numel()} {dtype_name(tensor.dtype)} elements;"
            f" it needs {length} of {dtype_name(like.dtype)}"
        )


def require_one_each(what: str, tensors: Sequence[torch.Tensor], size: int) -> None:
    """Make sure that there is a tensor for every rank of a group.

    Raises:
        ValueError: there is not.
    """
    if len(tensors) != size:
        raise ValueError(f"{what} has {len(tensors)} tensors; a group of {size} ranks needs {size}")


def pieces(what: str, tensor: torch.Tensor, sizes: Sequence[int], count: int) -> Blocks:
    """A tensor cut along its first dimension; evenly, if no sizes are given.

    Raises:
        ValueError: it cannot be cut like this.
    """
    data = flat(tensor, what)
    if not sizes:
        if data.numel() % count:
            raise ValueError(
                f"{what} has {data.numel()} elements, which cannot be split evenly for"
                f" {count} ranks; give split sizes"
            )
        return even(data, count)
    length = tensor.shape[0] if tensor.dim() else 0
    if len(sizes) != count or sum(sizes) != length or min(sizes) < 0:
        raise ValueError(
            f"the split sizes of {what} are {list(sizes)}; for {count} ranks they have to be"
            f" {count} numbers with the sum {length}, its first dimension"
        )
    row = tensor[0].numel() if length else 0
    return of_sizes(data, [size * row for size in sizes])
