"""Chapter 10: an indexed reduction inside one tensor, and two uses of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.exercise.cases import Case, Draw, Kind
from grader.exercise.declaration import Evidence, Exercise, Mistake, Values
from grader.instruments import (
    count_lines,
    count_operations,
    differentiate,
    refuse_operations,
)
from headcount.core.values import dtype_name
from headcount.core.verdict import Diagnosis
from headcount.rank.recorder import ForbiddenCall

# scatter_reduce_1d: inputs and oracle. ----------------------------------------------

_LONG, _FLOAT, _DOUBLE, _BRAIN, _HALF = (
    torch.int64, torch.float32, torch.float64, torch.bfloat16, torch.float16,
)  # fmt: skip

#: Six places: 0 is named three times, 1 and 5 twice, 3 four times, 2 and 4 never.
_INDEX = (3, 0, 3, 1, 0, 3, 5, 1, 3, 0, 5)

#: Signs of what input holds at a place, and of what src brings there.  They make it
#: visible whether input is counted, and whether a maximum or minimum starts at 0.
_INPUT_SIGNS, _SRC_SIGNS = (1, -1, -1, -1, 1, 1), (-1, 1, 1, -1, 1, 1)

#: By number of integers, the place of one that floats round; no index names that in input.
_TOO_LARGE = {len(_INPUT_SIGNS): 4, len(_INDEX): 6}

_ALL = ("sum", "mean", "prod", "amax", "amin")

#: Dtype, reduction and ``include_self`` of each case.  Integers come first: on them a
#: mistake is recognised without rounding.
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
        # 4 and 5 divide these; only the odd number that is added shows how a mean is rounded
        return 20 * (draw.tensor(kind) % 2 + 1)
    return draw.tensor(kind) % (24 if dtype.itemsize == 1 else 99) + 1


def _numbers(
    draw: Draw, reduce: str, dtype: torch.dtype, signs: tuple[int, ...], odd: int = 0
) -> torch.Tensor:
    """Draw numbers with these signs; ``odd`` is added to the size of the first."""
    sizes = _sizes(draw, reduce, dtype, len(signs))
    if reduce == "mean" and len(signs):
        sizes[0] += odd
    if dtype == _LONG and reduce in ("amax", "amin") and len(signs) in _TOO_LARGE:
        place = _TOO_LARGE[len(signs)]
        sizes[place] = 2**53 + 4 * sizes[place] + 1
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
    """Draw cases of every reduction on every kind of number, and of the easily forgotten sizes."""

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
        # integers that float64 cannot hold
        large = [_numbers(draw, "sum", _LONG, s) for s in (_INPUT_SIGNS, (1, -1) * 5)]
        far, near = (t.sign() * 2**56 + 2 * t + 1 for t in large)
        index = torch.tensor(_INDEX[:10])
        yield _case(draw, "large numbers", reduce, own, input=far, index=index, src=near)
    for reduce, sign in (("amax", -1), ("amin", 1)):
        extreme = case(_DOUBLE, reduce, True, "all far from 0")
        for tensor in (extreme.input, extreme.src):
            tensor.copy_(sign * 2**33 * tensor.abs())
        yield extreme
    for reduce, own in (("amax", True), ("amin", False), ("sum", True), ("mean", False)):
        broken = case(_FLOAT, reduce, own, "with nan and inf")
        broken.input[[0, 5]] = torch.tensor([torch.nan, torch.inf])
        broken.src[[2, 3]] = torch.tensor([torch.nan, torch.inf])
        if reduce in ("amax", "amin"):  # math.fsum refuses inf − inf
            broken.src[7] = -torch.inf
        yield broken


def reduced(c: Case) -> torch.Tensor:
    """Return torch's own result; floating-point numbers are reduced in float64 and rounded once."""
    wide = _DOUBLE if c.input.dtype.is_floating_point else c.input.dtype
    x, src = c.input.to(wide), c.src.to(wide)
    found: torch.Tensor = x.scatter_reduce(0, c.index, src, c.reduce, include_self=c.include_self)
    return found.to(c.input.dtype)


def magnitude(c: Case) -> torch.Tensor:
    """Return how large the terms of each place are; 0 where there are none and input has to stay.

    A sum may begin with larger numbers and end with their difference, so all terms count for every
    place.
    """
    if c.reduce in ("amax", "amin") or not c.input.dtype.is_floating_point:
        return torch.zeros(len(c.input))
    # what is not finite is compared exactly
    x, src = (t.double().abs().nan_to_num(0, 0, 0) for t in (c.input, c.src[: len(c.index)]))
    counts = c.index.bincount(minlength=len(x))
    named = counts > 0
    if c.reduce == "prod":
        sizes = x.scatter_reduce(0, c.index, src, "prod", include_self=c.include_self)
    else:
        sizes = (x[named].sum() + src.sum()).expand(len(x))
        if c.reduce == "mean":
            sizes = sizes / (counts + int(c.include_self)).clamp(min=1)
    return torch.where(named, sizes, 0)


def _fails_on_one_dtype(e: Evidence) -> bool:
    """Return whether a reduction raises on one dtype only, and works on another."""
    c = e.case
    same = [one for one in e.judged if one.case.reduce == c.reduce and len(one.case.index)]
    here = [one for one in same if one.case.input.dtype == c.input.dtype]
    return (
        e.diagnosis is Diagnosis.EXCEPTION
        and not any(one.passed for one in here)
        and any(one.passed for one in same)
    )


def _refusing(answer: Callable[..., Any], *arguments: Any) -> Any:
    names = frozenset({"scatter_reduce", "index_reduce", "index_add", "scatter_add"})
    return refuse_operations(names, answer, *arguments)


scatter_reduce_1d = Exercise(
    signature="scatter_reduce_1d(input: Tensor, index: Tensor, src: Tensor, reduce: str,"
    " include_self: bool) -> Tensor",
    summary="what Tensor.scatter_reduce does in one dimension, by hand",
    inputs=reductions,
    world_sizes=(1,),
    adapter=_refusing,
    values=Values(
        lambda c: [reduced(c)] * c.n,
        reduced=lambda c: len(c.index) + 3,
        magnitude=lambda c: [magnitude(c)] * c.n,
    ),
    mistakes=(
        Mistake(
            "On other dtypes this reduction works. These are all that torch takes, integers of 8"
            " bits, bool and complex numbers among them: does the line that fails need one of"
            " the others?",
            when=_fails_on_one_dtype,
        ),
        Mistake(
            "index may be shorter than src; then only the first len(index) numbers of src count.",
            when=lambda e: len(e.case.index) < len(e.case.src),
        ),
        Mistake(
            "An empty index names no place: the result is a copy of input.",
            when=lambda e: len(e.case.index) == 0 and e.diagnosis is not Diagnosis.ALIASED,
        ),
    ),
)


# Rows added up by an index, and their gradients. ------------------------------------

#: What every rank reports: the result, and the gradients.
Report = list[dict[str, Any]]


def _many(draw: Draw, length: int, places: int) -> tuple[int, ...]:
    """Draw random places, each with many duplicates."""
    return tuple((draw.tensor(Kind(torch.int64, (length,))) % places).tolist())


def _summed(rows: torch.Tensor, index: torch.Tensor, places: int) -> torch.Tensor:
    return rows.new_zeros(places, rows.shape[1]).index_add(0, index, rows)


def _report(c: Case, result: torch.Tensor, gradients: dict[str, torch.Tensor]) -> Report:
    """Return every rank's report, in the first argument's dtype; no gradient if that is empty."""
    first = next(iter(c.columns.values()))
    report = {"result": result.to(first.dtype)}
    if len(first):
        report |= {f"gradient of {name}": g.to(first.dtype) for name, g in gradients.items()}
    return [report] * c.n


def _with_gradients(
    answer: Callable[..., Any], leaves: dict[str, int], arguments: list[Any], cotangent: Any
) -> dict[str, Any]:
    """Call the answer and differentiate it; without rows only the result is reported."""
    if len(arguments[0]):
        return differentiate(answer, arguments, leaves, cotangent.clone())
    result = answer(*arguments)
    return {"result": result.detach() if isinstance(result, torch.Tensor) else result}


# Means of segments. -----------------------------------------------------------------


def segments(draw: Draw) -> Iterator[Case]:
    """Draw rows and the segments that they belong to, some of them empty."""
    kinds: tuple[tuple[str, torch.dtype, tuple[int, ...], int, int], ...] = (
        ("segments in order", torch.float64, (0, 0, 0, 1, 1, 2), 3, 2),
        ("segments in any order", torch.float32, (2, 0, 2, 1, 0, 2, 1, 2), 3, 3),
        ("an empty segment in the middle", torch.float64, (0, 3, 0, 1, 3, 3), 4, 2),
        ("the last segments are empty", torch.float32, (1, 0, 1, 0, 0), 4, 2),
        ("one segment", torch.float32, (0,) * 6, 1, 4),
        ("one row, one column", torch.float64, (1,), 2, 1),
        ("empty segments", torch.bfloat16, (1, 0, 1, 4, 1, 0, 1), 6, 5),
        ("no rows", torch.float32, (), 3, 2),
        ("many rows", torch.float32, _many(draw, 1000, 7), 8, 3),
        # in one segment, since a sum may run over the rows of all
        ("with nan and inf", torch.float64, (0,) * 8, 1, 4),
    )
    for name, dtype, ids, num_segments, width in kinds:
        values = Kind(dtype, (len(ids), width), special=name == "with nan and inf")
        yield draw.case(
            f"{name}, {values} in {num_segments}",
            values=draw.tensor(values),
            segment_ids=torch.tensor(ids, dtype=torch.int64),
            num_segments=num_segments,
            cotangent=draw.tensor(Kind(dtype, (num_segments, width))),
        )


def means(c: Case) -> Report:
    """Return the means of segments, 0 for those without a row, and the gradient of values."""
    counts = c.segment_ids.bincount(minlength=c.num_segments)[:, None].double().clamp(min=1)
    result = _summed(c.values.double(), c.segment_ids, c.num_segments) / counts
    return _report(c, result, {"values": (c.cotangent.double() / counts)[c.segment_ids]})


def segment_sizes(c: Case) -> Report:
    """Return how large the terms are; running sums are allowed, so all rows count."""
    counts = c.segment_ids.bincount(minlength=c.num_segments)[:, None].double()
    # what is not finite is compared exactly
    total = c.values.double().abs().sum(0).nan_to_num(0, 0, 0)
    result = total / counts.clamp(min=1) * (counts > 0)
    slopes = (c.cotangent.double().abs() / counts.clamp(min=1)).sum(0)
    return [{"result": result, "gradient of values": slopes.expand(c.values.shape)}] * c.n


def _segment_in_rank(
    answer: Callable[..., Any], values: Any, segment_ids: Any, num_segments: int, cotangent: Any
) -> dict[str, Any]:
    arguments = [values, segment_ids, num_segments]
    return _with_gradients(answer, {"values": 0}, arguments, cotangent)


segment_mean = Exercise(
    signature="segment_mean(values: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor",
    summary="the mean of the rows of each segment, 0 for an empty one; gradients flow",
    inputs=segments,
    world_sizes=(1,),
    adapter=_segment_in_rank,
    values=Values(means, reduced=lambda c: len(c.values) + 3, magnitude=segment_sizes),
    mistakes=(
        Mistake(
            "There may be no rows at all: then the result is zeros of shape (num_segments,"
            " columns).",
            when=lambda e: len(e.case.values) == 0,
        ),
    ),
)


# A mixture of experts. --------------------------------------------------------------


def combinations(draw: Draw) -> Iterator[Case]:
    """Draw the outputs of experts, and the tokens that each belongs to."""
    kinds: tuple[tuple[str, torch.dtype, tuple[int, ...], int, int], ...] = (
        ("two experts a token", torch.float64, (0, 1, 2, 3, 2, 0, 3, 1), 4, 3),
        ("one expert a token", torch.float32, (2, 0, 3, 1), 4, 5),
        ("as many columns as rows", torch.float64, (0, 2, 2, 0, 2), 3, 5),
        ("tokens without an expert", torch.float32, (3, 1, 3, 3, 1), 6, 2),
        ("all rows to one token", torch.float64, (1,) * 7, 2, 4),
        ("one row", torch.float32, (0,), 1, 1),
        ("bfloat16", torch.bfloat16, (0, 1, 2, 3, 2, 0, 3, 1), 4, 6),
        ("no rows", torch.float32, (), 3, 2),
        ("many rows", torch.float32, _many(draw, 1000, 20), 20, 4),
    )
    for i, (name, dtype, index, num_tokens, width) in enumerate(kinds):
        rows = Kind(dtype, (len(index), width))
        yield draw.case(
            f"{name}, {rows} for {num_tokens}",
            rows=draw.tensor(rows),
            token_index=torch.tensor(index, dtype=torch.int64),
            weight=draw.factors(Kind(dtype, (len(index),))) * 0.75,
            num_tokens=num_tokens,
            cotangent=draw.tensor(Kind(dtype, (num_tokens, width))),
            with_counts=i == 0,
        )


def combined(c: Case) -> Report:
    """Return the weighted sums of the rows of each token, and the gradients."""
    weight, rows = c.weight.double()[:, None], c.rows.double()
    slopes = c.cotangent.double()[c.token_index]
    result = _summed(weight * rows, c.token_index, c.num_tokens)
    return _report(c, result, {"rows": weight * slopes, "weight": (rows * slopes).sum(1)})


def combination_sizes(c: Case) -> Report:
    """Return how large the terms are; running sums are allowed, so all rows count."""
    rows, weight = c.rows.double().abs(), c.weight.double().abs()[:, None]
    slopes = c.cotangent.double().abs().sum(0)
    named = c.token_index.bincount(minlength=c.num_tokens)[:, None] > 0
    return [
        {
            "result": (weight * rows).sum(0) * named,
            "gradient of rows": weight * slopes,
            "gradient of weight": (rows * slopes).sum(1),
        }
    ] * c.n


def _combine_in_rank(
    combine: Callable[..., Any],
    rows: torch.Tensor,
    token_index: torch.Tensor,
    weight: torch.Tensor,
    num_tokens: int,
    cotangent: torch.Tensor,
    with_counts: bool,
) -> dict[str, Any]:
    """Call the answer; where asked, count what it does to find Python loops over rows or tokens."""
    arguments = [rows, token_index, weight, num_tokens]
    found = _with_gradients(combine, {"rows": 0, "weight": 2}, arguments, cotangent)
    counts = {"lines of your code": count_lines, "operations of torch": count_operations}
    for what, count in counts.items() if with_counts else ():

        def counted(n: int, tokens: int, count: Callable[..., int] = count) -> int:
            some = rows.new_ones(n, rows.shape[1])
            return count(combine, some, torch.arange(n) % tokens, weight.new_ones(n), tokens)

        few, many = 64, 256
        before, between, after = counted(few, few), counted(many, few), counted(many, many)
        if between - before >= many - few:
            raise ForbiddenCall(
                f"a Python loop over rows: {few} rows take {before} {what}, and"
                f" {many} rows for as many tokens take {between}"
            )
        if after - between >= many - few:
            raise ForbiddenCall(
                f"a Python loop over tokens: {few} tokens take {between} {what}, and"
                f" {many} tokens with as many rows take {after}"
            )
    return found


combine_experts = Exercise(
    signature="combine_experts(rows: Tensor, token_index: Tensor, weight: Tensor,"
    " num_tokens: int) -> Tensor",
    summary="out[t] is the sum of weight·row over the rows of token t; gradients flow",
    inputs=combinations,
    world_sizes=(1,),
    adapter=_combine_in_rank,
    values=Values(combined, reduced=lambda c: max(c.rows.shape) + 3, magnitude=combination_sizes),
    mistakes=(
        Mistake(
            "There may be no rows at all: then the result is zeros of shape (num_tokens, columns).",
            when=lambda e: len(e.case.rows) == 0,
        ),
    ),
)
