"""Helpers for the inputs and one-line oracles of reductions; they run only in the judge."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist

from grader.course.cases import Kind

__all__ = ["OPS", "magnitude", "nbytes", "op_name", "reduced", "reductions"]

#: The reductions of the course, by name.
OPS = {name: getattr(dist.ReduceOp, name) for name in ("SUM", "AVG", "MIN", "MAX", "PRODUCT")}


def reductions(n: int) -> tuple[tuple[str, Kind], ...]:
    """Return every reduction on floating-point numbers, and all but AVG on integers.

    The lengths are those of :func:`grader.course.cases.kinds`.  A sum of integers comes first,
    since in it no wrong digit can be taken for rounding.  Products of integers have several
    elements, since 2 + 2 is 2 · 2.
    """
    return (
        ("SUM", Kind(torch.int64, (7,))),
        ("AVG", Kind(torch.float64, (3, 5))),
        ("MIN", Kind(torch.int64, (n + 1,))),
        ("MAX", Kind(torch.float32, (2, 4))),
        ("PRODUCT", Kind(torch.int64, (5,))),
        ("SUM", Kind(torch.float32, (1,))),
        ("AVG", Kind(torch.float32, (n - 1,))),
        ("PRODUCT", Kind(torch.float64, (n,))),
        ("SUM", Kind(torch.bfloat16, (1000,))),
        ("SUM", Kind(torch.float32, (0,))),
    )


def op_name(op: dist.ReduceOp) -> str:
    """Return ``SUM`` for ``dist.ReduceOp.SUM``, and so on."""
    return next(name for name, known in OPS.items() if known == op)


def nbytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's elements."""
    return tensor.numel() * tensor.element_size()


def reduced(op: dist.ReduceOp, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the reduction of tensors of one shape and dtype.

    Floating-point numbers are reduced in float64, so the result is rounded
    once; integers are reduced exactly.

    Raises:
        ValueError: integers are to be averaged.
    """
    dtype = tensors[0].dtype
    wide = torch.float64 if dtype.is_floating_point else dtype
    stack = torch.stack([t.to(wide) for t in tensors])
    name = op_name(op)
    if name == "AVG" and not dtype.is_floating_point:
        raise ValueError("AVG is defined for floating-point numbers only")
    result = {
        "SUM": lambda: stack.sum(0),
        "AVG": lambda: stack.mean(0),
        "MIN": lambda: stack.amin(0),
        "MAX": lambda: stack.amax(0),
        "PRODUCT": lambda: stack.prod(0),
    }[name]()
    return result.to(dtype)


def magnitude(op: dist.ReduceOp, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return how large the terms of a reduction are, which rounding errors are relative to."""
    name = op_name(op)
    if name in ("MIN", "MAX"):
        return torch.zeros_like(tensors[0])
    return reduced(op, [t.abs() for t in tensors])
