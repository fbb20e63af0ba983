"""The reductions: how what arrives is combined with what is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["Combine", "Reduction", "reduction_of"]

#: Combines the second tensor into the first.
Combine = Callable[[torch.Tensor, torch.Tensor], Any]


def _minimum(mine: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.minimum(mine, theirs, out=mine)


def _maximum(mine: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.maximum(mine, theirs, out=mine)


_COMBINES: dict[str, Combine] = {
    "SUM": torch.Tensor.add_,
    "AVG": torch.Tensor.add_,
    "PRODUCT": torch.Tensor.mul_,
    "MIN": _minimum,
    "MAX": _maximum,
    "BAND": torch.Tensor.bitwise_and_,
    "BOR": torch.Tensor.bitwise_or_,
    "BXOR": torch.Tensor.bitwise_xor_,
}


class Reduction:
    """One of torch's reductions, for tensors of one dtype.

    Attributes:
        name: torch's.
        combine: combines the second tensor into the first.
    """

    __slots__ = ("combine", "name")

    def __init__(self, name: str, combine: Combine) -> None:
        self.name = name
        self.combine = combine

    def finish(self, tensor: torch.Tensor, size: int) -> None:
        """What is left to do when the terms of ``size`` ranks are combined."""
        if self.name == "AVG":
            tensor.div_(size)


def reduction_of(op: Any, dtype: torch.dtype) -> Reduction:
    """The reduction that torch's operation names.

    Raises:
        ValueError: a simulation has no such reduction, or not for this dtype.
    """
    inner = getattr(op, "op", op)
    name = str(getattr(inner, "name", inner))
    combine = _COMBINES.get(name)
    if combine is None:
        known = ", ".join(_COMBINES)
        raise ValueError(f"there is no reduction {name} here; there are {known}")
    real = dtype.is_floating_point or dtype.is_complex
    if name == "AVG" and not real:
        raise ValueError(f"AVG is for floating-point numbers, not for {dtype}; use SUM and divide")
    if name in ("BAND", "BOR", "BXOR") and real:
        raise ValueError(f"{name} is for integers and bool, not for {dtype}")
    return Reduction(name, combine)
