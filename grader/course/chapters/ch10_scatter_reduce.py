"""Chapter 10: an indexed reduction inside one tensor, and two uses of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.core.values import dtype_name
from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind
from grader.course.exercise import Evidence, Exercise, Mistake, Values
from grader.rank.instrumentation import differentiated, operations, refusing, steps
from grader.rank.recorder import ForbiddenCall

# scatter_reduce_1d: inputs and oracle. ----------------------------------------------

_LONG, _FLOAT, _DOUBLE, _BRAIN, _HALF = (
    torch.int64, torch.float32, torch.float64, torch.bfloat16, torch.float16,
)  # fmt: skip

#: Six places: 0 is named three times, 1 and 5 twice, 3 four times, 2 and 4 never.
_INDEX = (3, 0, 3, 1, 0, 3, 5, 1, 3, 0, 5)

#: Signs of what input holds at a place, and of what src brings there.  They make it
#: visible whether input is counted, and whether a maximum or minimum starts at 0.
_INPUT_SIGNS, _SRC_SIGNS = (1, -1, -1, -1, 1, 1), (-1, 1, 1, -1, 1, 1)

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
    for reduce, own in (("amax", True), ("amin", False)):
        broken = case(_FLOAT, reduce, own, "with nan and inf")
        broken.input[[0, 5]] = torch.tensor([torch.nan, torch.inf])
        broken.src[[2, 3, 7]] = torch.tensor([torch.nan, torch.inf, -torch.inf])
        yield broken


def reduced(c: Case, **changes: Any) -> torch.Tensor:
    """Return torch's own result; floating-point numbers are reduced in float64 and rounded once."""
    own, reduce = changes.get("include_self", c.include_self), changes.get("reduce", c.reduce)
    wide = _DOUBLE if c.input.dtype.is_floating_point else c.input.dtype
    x, src = c.input.to(wide), changes.get("src", c.src).to(wide)
    found: torch.Tensor = x.scatter_reduce(0, c.index, src, reduce, include_self=own)
    return found.to(c.input.dtype)


def counts(c: Case, own: bool) -> torch.Tensor:
    """Return how many numbers are reduced into each place."""
    found: torch.Tensor = c.index.bincount(minlength=len(c.input)) + int(own)
    return found


def named(c: Case) -> torch.Tensor:
    """Return which places index names."""
    return counts(c, False) > 0


def magnitude(c: Case) -> torch.Tensor:
    """Return how large the terms of each place are; 0 where there are none and input has to stay.

    A sum may be computed as a difference of running sums over the whole of src, so all
    terms count for every place.
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


# scatter_reduce_1d: what mistakes give. ---------------------------------------------


def _alone(
    wrong: Callable[[Case], torch.Tensor | None],
) -> Callable[[Case], list[torch.Tensor] | None]:
    """Make the same wrong tensor for every rank; ``None`` for nan, inf and large numbers."""

    def gives(c: Case) -> list[torch.Tensor] | None:
        odd = c.name.endswith(("with nan and inf", "large numbers"))
        found = None if odd else wrong(c)
        return None if found is None else [found] * c.n

    return gives


_STEPS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add,
    "prod": torch.mul,
    "amax": torch.maximum,
    "amin": torch.minimum,
    "mean": torch.add,
}


def _last_wins(c: Case) -> torch.Tensor | None:
    """Return what ``out[index] += src`` gives: each step starts from the same old value."""
    if c.input.dtype.is_floating_point or c.reduce == "mean":
        return None
    out: torch.Tensor = c.input.clone()
    for i, value in zip(c.index, c.src, strict=False):
        out[i] = _STEPS[c.reduce](c.input[i], value) if c.include_self else value
    return out


def _divided(
    c: Case, count: torch.Tensor, rounding: str | None = "floor", own: bool | None = None
) -> torch.Tensor | None:
    """Return the means of integers if sums were divided by another count, or rounded otherwise."""
    if c.reduce != "mean" or c.input.dtype.is_floating_point:
        return None
    total = reduced(c, reduce="sum", include_self=c.include_self if own is None else own)
    mean = torch.div(total, count.clamp(min=1), rounding_mode=rounding).round()
    return torch.where(named(c), mean, c.input).to(c.input.dtype)


def _cut(c: Case) -> torch.Tensor | None:
    """Return the mean of integers, rounded towards zero."""
    return _divided(c, counts(c, c.include_self), "trunc")


def _to_nearest(c: Case) -> torch.Tensor | None:
    """Return the mean of integers, rounded to the nearest."""
    return _divided(c, counts(c, c.include_self), None)


def _floored(e: Evidence) -> bool:
    """Return whether a mean of floating-point numbers is rounded down like one of integers."""
    c = e.case
    if e.diagnosis is not Diagnosis.WRONG_VALUE or c.reduce != "mean":
        return False
    whole = reduced(c).floor()[named(c)]
    return c.input.dtype.is_floating_point and torch.equal(e.actual[0][named(c)], whole)


def _exchanged(c: Case) -> torch.Tensor | None:
    """Return the minimum where the maximum is asked for, and the other way round."""
    other = {"amax": "amin", "amin": "amax"}.get(c.reduce)
    return reduced(c, reduce=other) if other else None


def _bounded_by(c: Case, start: float, *asked: str) -> torch.Tensor | None:
    """Return one of the reductions ``asked`` as it is if it starts at the number ``start``."""
    if c.input.dtype.is_complex or c.reduce not in asked:
        return None
    right = reduced(c)
    other = _STEPS[c.reduce](right, torch.full_like(right, start))
    return torch.where(named(c), other, right)


def _elsewhere(e: Evidence) -> bool:
    """Return whether the answer is right where index points, and wrong where it does not."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    actual, right, here = e.actual[0], reduced(e.case), named(e.case)
    wide = torch.complex128  # holds every dtype of the exercise
    close = torch.allclose(actual[here].to(wide), right[here].to(wide), rtol=0.02)
    return close and not torch.equal(actual[~here], right[~here])


def _loses_nan(e: Evidence) -> bool:
    """Return whether there is a number where nan should be."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    return bool((reduced(e.case).isnan() & ~e.actual[0].isnan()).any())


def _reads_at_index(e: Evidence) -> bool:
    """Return whether numbers of src were read at index, as a gather does."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    c = e.case
    fetched = c.src[c.index[: len(c.input)]]
    wrong = (fetched, _STEPS[c.reduce](c.input, fetched))
    return any(torch.equal(e.actual[0], one) for one in wrong)


def _divided_to_float(e: Evidence) -> bool:
    """Return whether a mean of integers is a float, where their sum was an integer."""
    c = e.case
    return (
        e.diagnosis is Diagnosis.WRONG_DTYPE
        and c.reduce == "mean"
        and not c.input.dtype.is_floating_point
        and e.actual[0].dtype.is_floating_point
        and any(one.case.reduce == "sum" for one in e.passed)
    )


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
    return refusing(names, answer, *arguments)


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
            "Where index names a place twice, the last one wins. Each number is combined with the"
            " old value of that place, as in out[index] += src, which reads all of them before it"
            " writes any: combine with what the numbers before it have left.",
            gives=_alone(_last_wins),
        ),
        Mistake(
            "With include_self=False, what input has at a place that index names does not count:"
            " the first number of src replaces it.",
            gives=_alone(
                lambda c: None if c.include_self else reduced(c, include_self=True),
            ),
        ),
        Mistake(
            "With include_self=True, what input has at a place counts as one more number.",
            gives=_alone(lambda c: reduced(c, include_self=False) if c.include_self else None),
        ),
        Mistake(
            "A mean is divided by how many numbers were added, and with include_self=True what"
            " input has there is one of them.",
            gives=_alone(lambda c: _divided(c, counts(c, False)) if c.include_self else None),
        ),
        Mistake(
            "With include_self=False the mean is divided by one too many: what input has there"
            " was not added, so it is not counted.",
            gives=_alone(lambda c: None if c.include_self else _divided(c, counts(c, True))),
        ),
        Mistake(
            "The mean is not divided by how many numbers were added.",
            gives=_alone(
                lambda c: reduced(c, reduce="sum") if c.reduce == "mean" else None,
            ),
        ),
        # two mistakes with one hint: on some numbers they give the same
        *(
            Mistake(
                "A mean of integers is rounded down, to minus infinity: -7/2 gives -4. Converting"
                " to integers cuts towards zero, and round() goes to the nearest: torch.div(total,"
                " count, rounding_mode='floor') or Python's // do what torch does.",
                gives=_alone(wrong),
            )
            for wrong in (_cut, _to_nearest)
        ),
        Mistake(
            "Only a mean of integers is rounded down; one of floating-point numbers is not.",
            when=_floored,
        ),
        Mistake(
            "amax or amin starts at 0, which may be more or less than all the numbers: start with"
            " the first of them.",
            gives=_alone(lambda c: _bounded_by(c, 0, "amax", "amin")),
        ),
        Mistake(
            "A product that starts at 0 stays 0: start with the first number, or with 1.",
            gives=_alone(lambda c: _bounded_by(c, 0, "prod")),
        ),
        Mistake(
            "amax and amin are swapped.",
            gives=_alone(_exchanged),
        ),
        Mistake(
            "amin gives the largest number: take torch.minimum there.",
            gives=_alone(lambda c: reduced(c, reduce="amax") if c.reduce == "amin" else None),
        ),
        Mistake(
            "amax gives the smallest number: take torch.maximum there.",
            gives=_alone(lambda c: reduced(c, reduce="amin") if c.reduce == "amax" else None),
        ),
        Mistake(
            "You read src at index[i]. It is the other way round: index[i] is the place that src[i]"
            " goes to.",
            when=_reads_at_index,
        ),
        Mistake(
            "scatter_reduce, index_reduce, index_add and scatter_add would do it for you."
            " Everything else is allowed: a loop, masks such as src[index == i], sorting.",
            when=lambda e: e.says("is what this exercise asks you to write"),
        ),
        Mistake(
            "A mean of integers is an integer here, rounded down. Dividing with / turns it into a"
            " floating-point number: divide with rounding_mode='floor' or //.",
            when=_divided_to_float,
        ),
        Mistake(
            "On other dtypes this reduction works. These are all that torch takes, integers of 8"
            " bits, bool and complex numbers among them: does the line that fails need one of"
            " the others?",
            when=_fails_on_one_dtype,
        ),
        Mistake(
            "These integers have more digits than a floating-point number can hold: total /"
            " count, mean() and float() go through one. Stay with integers, and divide with //.",
            when=lambda e: "large" in e.case.name and e.diagnosis is Diagnosis.WRONG_VALUE,
        ),
        Mistake(
            "A place that index does not name keeps what input has there, whatever include_self"
            " says: nothing is reduced there.",
            when=_elsewhere,
        ),
        Mistake(
            "A nan among the numbers has to give nan. Python's max and min, and comparisons with"
            " < and >, lose it; torch.maximum, torch.minimum, amax and amin keep it.",
            when=_loses_nan,
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


def lost_rows(rows: torch.Tensor, index: torch.Tensor, places: int) -> torch.Tensor:
    """Return the last row of each place, which is what ``out[index] += rows`` leaves there."""
    out = rows.new_zeros(places, rows.shape[1])
    for i, row in zip(index, rows, strict=True):
        out[i] = row
    return out


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
        return differentiated(answer, arguments, leaves, cotangent.clone())
    result = answer(*arguments)
    return {"result": result.detach() if isinstance(result, torch.Tensor) else result}


# What an answer shows. --------------------------------------------------------------

#: How torch says that two tensors of one operation have different dtypes.
TWO_DTYPES = ("same scalar type", "same dtype", "dtypes match", "expected scalar type")


def like(mistake: Callable[[Case], Report]) -> Callable[[Evidence], bool]:
    """Make a test for the result of a mistake, gradients aside, in any order of additions."""

    def when(e: Evidence) -> bool:
        if e.diagnosis is not Diagnosis.WRONG_VALUE:
            return False
        wrong, actual = mistake(e.case)[0]["result"], e.actual[0]["result"]
        near = 64 * torch.finfo(wrong.dtype).eps
        return torch.allclose(actual, wrong, near, near, equal_nan=True)

    return when


def says(*words: str) -> Callable[[Evidence], bool]:
    """Make a test for an exception with any of these words in its message."""
    return lambda e: e.failure is not None and any(w in e.failure.message for w in words)


def sizes_meet(e: Evidence, one: int, other: int) -> bool:
    """Return whether torch refused to combine two tensors that have these numbers of entries.

    It is false where both numbers are the same, since nothing is proved then.
    """
    text = e.failure.message if e.failure is not None else ""
    found = re.search(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", text)
    return found is not None and {int(found[1]), int(found[2])} == {one, other} and one != other


def has_nan(e: Evidence, name: str) -> bool:
    """Return whether an entry of the report holds nan."""
    return bool(e.actual[0][name].isnan().any())


def is_cut(e: Evidence, index: torch.Tensor, places: int) -> bool:
    """Return whether the result ends with the last place that index names."""
    last = int(index.max()) + 1
    return e.diagnosis is Diagnosis.WRONG_SHAPE and len(e.actual[0]["result"]) == last < places


def without(e: Evidence, name: str) -> bool:
    """Return whether no gradient reaches an argument."""
    return e.diagnosis is Diagnosis.WRONG_GRADIENT and e.actual[0][f"gradient of {name}"] is None


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
    )
    for name, dtype, ids, num_segments, width in kinds:
        values = Kind(dtype, (len(ids), width))
        yield draw.case(
            f"{name}, {values} in {num_segments}",
            values=draw.tensor(values),
            segment_ids=torch.tensor(ids, dtype=torch.int64),
            num_segments=num_segments,
            cotangent=draw.tensor(Kind(dtype, (num_segments, width))),
        )


def means(
    c: Case,
    divisor: Callable[[torch.Tensor], torch.Tensor] = lambda counts: counts.clamp(min=1),
    ids: torch.Tensor | None = None,
    add: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor] = _summed,
) -> Report:
    """Return the means of segments, with other divisors, ids or sums if these are given."""
    ids = c.segment_ids if ids is None else ids
    by = divisor(ids.bincount(minlength=c.num_segments)[:, None].double())
    result = add(c.values.double(), ids, c.num_segments) / by
    return _report(c, result, {"values": (c.cotangent.double() / by)[ids]})


def segment_sizes(c: Case) -> Report:
    """Return how large the terms are; running sums are allowed, so all rows count."""
    counts = c.segment_ids.bincount(minlength=c.num_segments)[:, None].double()
    result = c.values.double().abs().sum(0) / counts.clamp(min=1) * (counts > 0)
    slopes = (c.cotangent.double().abs() / counts.clamp(min=1)).sum(0)
    return [{"result": result, "gradient of values": slopes.expand(c.values.shape)}] * c.n


def empty_segments(c: Case) -> torch.Tensor:
    """Return which segments have no row."""
    empty: torch.Tensor = c.segment_ids.bincount(minlength=c.num_segments) == 0
    return empty


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
            "values belongs to the caller, who needs its gradient: do not write into it. values *"
            " factor makes a new tensor.",
            when=says("in-place operation"),
        ),
        Mistake(
            "Two tensors of different dtypes meet in this line. Make new tensors with the dtype of"
            " values: values.new_zeros(...) does, torch.zeros(...) alone makes float32.",
            when=says(*TWO_DTYPES),
        ),
        Mistake(
            "One tensor here has a number for each segment, the other one for each column. To"
            " divide the sums by the counts, make a column of them: counts[:, None].",
            when=lambda e: sizes_meet(e, e.case.num_segments, e.case.values.shape[1]),
        ),
        Mistake(
            "These are the sums: divide each by the number of its rows.",
            when=like(lambda c: means(c, lambda counts: torch.ones_like(counts))),
        ),
        Mistake(
            "Everything is divided by the number of all rows. Each segment has a count of its own:"
            " torch.bincount(segment_ids, minlength=num_segments).",
            when=like(lambda c: means(c, lambda counts: counts.sum())),
        ),
        Mistake(
            "Everything is divided by the number of segments. Each segment has a count of its own:"
            " torch.bincount(segment_ids, minlength=num_segments).",
            when=like(lambda c: means(c, lambda counts: c.num_segments * torch.ones_like(counts))),
        ),
        Mistake(
            "The built-in mean counts the zeros that it starts with as one more row:"
            " include_self=False leaves them out.",
            when=lambda e: (
                e.written(r"(scatter|index)_reduce_?\(.*'mean'")
                and not e.written("include_self=False")
                and like(lambda c: means(c, lambda counts: counts + 1))(e)
            ),
        ),
        Mistake(
            "Every count is one too large. To avoid 0/0, raise only the counts that are 0:"
            " counts.clamp(min=1).",
            when=like(lambda c: means(c, lambda counts: counts + 1)),
        ),
        Mistake(
            "The rows of a segment need not stand together: row i belongs to segment"
            " segment_ids[i].",
            when=like(lambda c: means(c, ids=c.segment_ids.sort().values)),
        ),
        Mistake(
            "Where several rows belong to one segment, only the last is in the sum. An assignment"
            " replaces what was there, and sums[segment_ids] += values reads all the old sums"
            " before it writes any: index_add adds every row.",
            when=like(lambda c: means(c, add=lost_rows)),
        ),
        Mistake(
            "The result is right, but 0/0 in an empty segment makes the gradient nan, even if"
            " torch.where or nan_to_num hides it afterwards: 0 times nan is nan. Divide by"
            " counts.clamp(min=1).",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_GRADIENT
                and has_nan(e, "gradient of values")
                and bool(empty_segments(e.case).any())
            ),
        ),
        Mistake(
            "An empty segment has sum 0 and count 0, and 0/0 is nan, in mean() too. Its mean"
            " should be 0: divide the sum by counts.clamp(min=1).",
            when=lambda e: (
                has_nan(e, "result")
                and torch.equal(e.actual[0]["result"].isnan().any(1), empty_segments(e.case))
            ),
        ),
        Mistake(
            "The last segments may be empty, so segment_ids.max() + 1 is not the number of"
            " segments: num_segments is.",
            when=lambda e: is_cut(e, e.case.segment_ids, e.case.num_segments),
        ),
        Mistake(
            "Only the segments that have rows are in the result. An empty one has a row of zeros.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_SHAPE
                and len(e.actual[0]["result"])
                == len(e.case.segment_ids.unique())
                < e.case.num_segments
            ),
        ),
        Mistake(
            "There may be no rows at all: then the result is zeros of shape (num_segments,"
            " columns).",
            when=lambda e: len(e.case.values) == 0,
        ),
        Mistake(
            "No gradient reaches values. It gets lost through .data, .detach(), .item(),"
            " .tolist(), torch.tensor(...) and torch.no_grad(): stay with torch operations on"
            " values.",
            when=lambda e: without(e, "values"),
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
            count_lines=i == 0,
        )


def combined(
    c: Case,
    weight: torch.Tensor | None = None,
    add: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor] = _summed,
) -> Report:
    """Return the weighted sums of the rows of each token, with other weights or sums if given."""
    weight = (c.weight if weight is None else weight).double()[:, None]
    rows, slopes = c.rows.double(), c.cotangent.double()[c.token_index]
    result = add(weight * rows, c.token_index, c.num_tokens)
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


def column_sums(c: Case) -> torch.Tensor:
    """Return the sum of the weights of each token."""
    return _summed(c.weight.double()[:, None], c.token_index, c.num_tokens)[:, 0]


def along_columns(e: Evidence) -> bool:
    """Return whether rows' weights were applied to columns, in a square matrix of rows."""
    c = e.case
    if e.diagnosis is not Diagnosis.WRONG_VALUE or c.rows.shape[0] != c.rows.shape[1]:
        return False
    wrong = _summed(c.rows * c.weight, c.token_index, c.num_tokens)
    return torch.allclose(e.actual[0]["result"], wrong)


def _combine_in_rank(
    combine: Callable[..., Any],
    rows: torch.Tensor,
    token_index: torch.Tensor,
    weight: torch.Tensor,
    num_tokens: int,
    cotangent: torch.Tensor,
    count_lines: bool,
) -> dict[str, Any]:
    """Call the answer; where asked, count what it does to find Python loops over rows or tokens."""
    arguments = [rows, token_index, weight, num_tokens]
    found = _with_gradients(combine, {"rows": 0, "weight": 2}, arguments, cotangent)
    counts = {"lines of your code": steps, "operations of torch": operations} if count_lines else {}
    for what, count in counts.items():

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
            "rows and weight belong to the caller, who needs their gradients: do not write into"
            " them. weight[:, None] * rows makes a new tensor.",
            when=says("in-place operation"),
        ),
        Mistake(
            "Two tensors of different dtypes meet in this line. Make new tensors with the dtype of"
            " rows: rows.new_zeros(...) does, torch.zeros(...) alone makes float32.",
            when=says(*TWO_DTYPES),
        ),
        Mistake(
            "weight has one number per row: weight[:, None] makes a column of it, and that"
            " multiplies the rows.",
            when=lambda e: sizes_meet(e, *e.case.rows.shape),
        ),
        Mistake(
            "A token that several rows belong to has only the last of them. An assignment"
            " replaces what was there, and out[token_index] += reads all the old values before it"
            " writes any: index_add adds them all.",
            when=like(lambda c: combined(c, add=lost_rows)),
        ),
        Mistake(
            "These are the plain sums, as if weight were not there: row i counts weight[i] times.",
            when=like(lambda c: combined(c, torch.ones_like(c.weight))),
        ),
        Mistake(
            "The weights are divided by their sum. Use them as the router gives them: do not"
            " normalise them.",
            when=like(lambda c: combined(c, c.weight.double() / column_sums(c)[c.token_index])),
        ),
        Mistake(
            "The rows of a token are averaged: return their weighted sum, without a division.",
            when=like(
                lambda c: combined(
                    c,
                    c.weight.double() / torch.bincount(c.token_index)[c.token_index],
                )
            ),
        ),
        Mistake(
            "Rows get the weights of other rows. weight[i] belongs to rows[i], not to token i.",
            when=like(lambda c: combined(c, c.weight[c.token_index])),
        ),
        Mistake(
            "The weights run along the columns, which is only possible because there are as many"
            " columns as rows: weight[:, None] * rows gives each row its weight.",
            when=along_columns,
        ),
        Mistake(
            "The result still has one row for each row of `rows`. Add up those that belong to one"
            " token, so that each token has one.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_SHAPE
                and e.actual[0]["result"].shape == e.case.rows.shape
            ),
        ),
        Mistake(
            "The last tokens may have no row, so token_index.max() + 1 is not the number of"
            " tokens: num_tokens is.",
            when=lambda e: is_cut(e, e.case.token_index, e.case.num_tokens),
        ),
        Mistake(
            "No gradient reaches weight, so the router would learn nothing: multiply with weight"
            " itself, not with weight.detach(), weight.data or weight.tolist().",
            when=lambda e: without(e, "weight") and not without(e, "rows"),
        ),
        Mistake(
            "No gradient reaches rows, so the experts would learn nothing: add up rows"
            " themselves, not rows.detach() or rows.data.",
            when=lambda e: without(e, "rows") and not without(e, "weight"),
        ),
        Mistake(
            "There may be no rows at all: then the result is zeros of shape (num_tokens, columns).",
            when=lambda e: len(e.case.rows) == 0,
        ),
        Mistake(
            "On a GPU every turn launches kernels of its own, and a batch has many thousand rows."
            " Let torch go over them all at once: weight[:, None] * rows weighs them, and"
            " index_add adds them up.",
            when=says("a Python loop over rows"),
        ),
        Mistake(
            "On a GPU every turn launches kernels of its own, and a batch has many thousand"
            " tokens. index_add adds every weighed row to the row of its token, for all tokens at"
            " once.",
            when=says("a Python loop over tokens"),
        ),
    ),
)
