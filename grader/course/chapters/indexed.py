"""What ``scatter_reduce_1d`` is asked: its inputs and its oracle.

Runs in the judge alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from grader.core.values import dtype_name
from grader.course.cases import Case, Draw, Kind

__all__ = ["counts", "magnitude", "named", "reduced", "reductions"]

_LONG, _FLOAT, _DOUBLE, _BRAIN, _HALF = (
    torch.int64, torch.float32, torch.float64, torch.bfloat16, torch.float16,
)  # fmt: skip

#: Six places: 0 is named three times, 1 and 5 twice, 3 four times, 2 and 4 never.
_INDEX = (3, 0, 3, 1, 0, 3, 5, 1, 3, 0, 5)

#: Signs of what input holds at a place, and of what src brings there.  So
#: leaving input out or in always shows, and so does starting a maximum or a
#: minimum at 0.
_INPUT_SIGNS, _SRC_SIGNS = (1, -1, -1, -1, 1, 1), (-1, 1, 1, -1, 1, 1)

_ALL = ("sum", "mean", "prod", "amax", "amin")

#: Which reduction on which dtype, and whether with input.  Integers first, for
#: which a mistake can be told without rounding.
_REDUCTIONS = (
    *((dtype, name, own) for dtype in (_LONG, _FLOAT) for name in _ALL for own in (True, False)),
    (_DOUBLE, "mean", True), (_DOUBLE, "prod", False),
    (_BRAIN, "sum", True), (_BRAIN, "mean", False), (_BRAIN, "amax", True),
    (_HALF, "sum", False), (_HALF, "amin", True),
    (torch.int32, "mean", False), (torch.int16, "mean", True), (torch.uint8, "mean", True),
    (torch.int8, "amin", False), (torch.bool, "sum", False), (torch.bool, "amin", True),
    (torch.complex64, "sum", True), (torch.complex64, "prod", False),
)  # fmt: skip


def _sizes(draw: Draw, reduce: str, dtype: torch.dtype, length: int) -> torch.Tensor:
    kind = Kind(_DOUBLE if dtype.is_floating_point else _LONG, (length,))
    if reduce == "prod":
        return draw.factors(kind).abs() + 1
    if dtype.is_floating_point:
        return draw.tensor(kind).abs() + 0.5
    if reduce == "mean":
        # 4 and 5 divide these, so that rounding shows where one number is added to
        return 20 * (draw.tensor(kind) % 2 + 1)
    return draw.tensor(kind) % (24 if dtype.itemsize == 1 else 99) + 1


def _numbers(
    draw: Draw, reduce: str, dtype: torch.dtype, signs: tuple[int, ...], odd: int = 0
) -> torch.Tensor:
    """Numbers with these signs; ``odd`` is added to the size of the first."""
    sizes = _sizes(draw, reduce, dtype, len(signs))
    if reduce == "mean" and len(signs):
        sizes[0] += odd
    if dtype == torch.bool:
        return sizes % 2 > 0
    if dtype.is_complex:
        return (torch.tensor(signs) * torch.complex(sizes.float(), sizes.flip(0).float())).to(dtype)
    return (sizes if dtype == torch.uint8 else sizes * torch.tensor(signs)).to(dtype)


def _case(draw: Draw, name: str, reduce: str, own: bool, **tensors: torch.Tensor) -> Case:
    dtype = dtype_name(tensors["input"].dtype)
    title = f"{reduce} of {dtype}, include_self={own}{name and ', '}{name}"
    return draw.case(title, **tensors, reduce=reduce, include_self=own)


def reductions(draw: Draw) -> Iterator[Case]:
    """Every reduction, on every kind of number, and the places that are easily forgotten."""

    def case(
        dtype: torch.dtype,
        reduce: str,
        own: bool,
        name: str = "",
        index: tuple[int, ...] = _INDEX,
        more: int = 0,
    ) -> Case:
        signs = tuple(_SRC_SIGNS[i] for i in index) + (1,) * more
        return _case(
            draw,
            name,
            reduce,
            own,
            input=_numbers(draw, reduce, dtype, _INPUT_SIGNS),
            index=torch.tensor(index, dtype=_LONG),
            src=_numbers(draw, reduce, dtype, signs, odd=1),
        )

    for dtype, reduce, own in _REDUCTIONS:
        yield case(dtype, reduce, own)
    yield case(_LONG, "sum", True, "every place once", (4, 2, 0, 5, 1, 3))
    yield case(_LONG, "prod", False, "all to one place", (2,) * 5)
    yield case(_LONG, "mean", True, "one number", (3,))
    yield case(_LONG, "sum", False, "index shorter than src", _INDEX[:7], 4)
    yield case(_FLOAT, "amin", False, "empty index", ())
    yield case(_FLOAT, "mean", True, "empty index, src is not", (), 3)
    many = draw.tensor(Kind(_LONG, (1000,))) % 6
    yield case(_LONG, "mean", False, "many duplicates", tuple(many.tolist()))
    nothing = torch.empty(0, dtype=_FLOAT)
    yield _case(
        draw, "nothing at all", "amax", True, input=nothing, index=nothing.long(), src=nothing
    )
    for reduce, own in (("sum", False), ("mean", True)):
        # what float64 cannot hold
        large = [_numbers(draw, "sum", _LONG, s) for s in (_INPUT_SIGNS, (1, -1) * 5)]
        far, near = (t.sign() * 2**56 + 2 * t + 1 for t in large)
        index = torch.tensor(_INDEX[:10])
        yield _case(draw, "large numbers", reduce, own, input=far, index=index, src=near)
    for reduce, own in (("amax", True), ("amin", False)):
        broken = case(_FLOAT, reduce, own, "with nan and inf")
        broken.input[[0, 5]] = torch.tensor([torch.nan, torch.inf])
        broken.src[[2, 3, 7]] = torch.tensor([torch.nan, torch.inf, -torch.inf])
        yield broken


def reduced(c: Case, **changes: Any) -> torch.Tensor:
    """What torch gives; floating-point numbers are reduced in float64 and rounded once."""
    own, reduce = changes.get("include_self", c.include_self), changes.get("reduce", c.reduce)
    wide = _DOUBLE if c.input.dtype.is_floating_point else c.input.dtype
    x, src = c.input.to(wide), changes.get("src", c.src).to(wide)
    found: torch.Tensor = x.scatter_reduce(0, c.index, src, reduce, include_self=own)
    return found.to(c.input.dtype)


def counts(c: Case, own: bool) -> torch.Tensor:
    """How many numbers are reduced into each place."""
    found: torch.Tensor = c.index.bincount(minlength=len(c.input)) + int(own)
    return found


def named(c: Case) -> torch.Tensor:
    """Which places index names."""
    return counts(c, False) > 0


def magnitude(c: Case) -> torch.Tensor:
    """How large what goes into each place is; 0 where nothing does, and input has to stay.

    A sum may be taken over everything in order, and a place's share found as a
    difference: so all that is added counts for every place.
    """
    if c.reduce in ("amax", "amin") or not c.input.dtype.is_floating_point:
        return torch.zeros(len(c.input))
    x, src = c.input.double().abs(), c.src[: len(c.index)].double().abs()
    if c.reduce == "prod":
        sizes = x.scatter_reduce(0, c.index, src, "prod", include_self=c.include_self)
    else:
        sizes = (x[named(c)].sum() + src.sum()).expand(len(x))
        if c.reduce == "mean":
            sizes = sizes / counts(c, c.include_self).clamp(min=1)
    return torch.where(named(c), sizes, 0)
