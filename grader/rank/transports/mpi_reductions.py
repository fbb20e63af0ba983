"""MPI's operations for torch's reductions, also of element types that MPI lacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from mpi4py import MPI

__all__ = ["operation", "typed"]

#: The element types that MPI can reduce by itself.
_KNOWN = {
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.int8: MPI.INT8_T,
    torch.int16: MPI.INT16_T,
    torch.int32: MPI.INT32_T,
    torch.int64: MPI.INT64_T,
    torch.uint8: MPI.UINT8_T,
    torch.bool: MPI.C_BOOL,
    torch.complex64: MPI.C_FLOAT_COMPLEX,
    torch.complex128: MPI.C_DOUBLE_COMPLEX,
}

_OPERATIONS = {
    "SUM": MPI.SUM,
    "PRODUCT": MPI.PROD,
    "MIN": MPI.MIN,
    "MAX": MPI.MAX,
    "BAND": MPI.BAND,
    "BOR": MPI.BOR,
    "BXOR": MPI.BXOR,
}

#: The same on tensors, for element types of two bytes.
_BY_TORCH: dict[str, Callable[..., torch.Tensor]] = {
    "SUM": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
}


def typed(tensor: torch.Tensor) -> list[Any]:
    """A contiguous tensor as a buffer whose elements MPI can reduce."""
    known = _KNOWN.get(tensor.dtype)
    return [raw(tensor), tensor.numel(), _halves() if known is None else known]


def raw(tensor: torch.Tensor) -> Any:
    """The memory of a contiguous tensor.

    Raises:
        ValueError: it is not contiguous, or not on the CPU.
    """
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise ValueError(f"MPI needs dense CPU tensors here, not one on {tensor.device}")
    if not tensor.is_contiguous():
        raise ValueError("MPI needs contiguous tensors; call .contiguous() first")
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()


def operation(name: str, dtype: torch.dtype) -> MPI.Op:
    """What MPI calls a reduction such as ``SUM`` of elements of a type.

    Raises:
        RuntimeError: MPI has no such reduction.
    """
    if name not in _OPERATIONS:
        raise RuntimeError(f"MPI has no reduction {name}; it has {', '.join(_OPERATIONS)}")
    if dtype in _KNOWN:
        return _OPERATIONS[name]
    if name not in _BY_TORCH:
        raise RuntimeError(f"MPI has no reduction {name} of {dtype}")
    return _own(name, dtype)


@lru_cache
def _halves() -> MPI.Datatype:
    """Elements of two bytes: float16 and bfloat16."""
    return MPI.BYTE.Create_contiguous(2).Commit()


@lru_cache
def _own(name: str, dtype: torch.dtype) -> MPI.Op:
    """An operation that torch carries out."""
    combine = _BY_TORCH[name]

    def reduce(source: Any, target: Any, _: MPI.Datatype) -> None:
        ours = torch.frombuffer(target, dtype=dtype)
        ours.copy_(combine(torch.frombuffer(source, dtype=dtype), ours))

    return MPI.Op.Create(reduce, commute=True)
