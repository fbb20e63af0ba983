"""What ``segment_mean`` and ``combine_experts`` are asked: inputs, oracles, and mistakes' results.

Runs in the judge alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind
from grader.course.exercise import Evidence

__all__ = [
    "TWO_DTYPES",
    "along_columns",
    "column_sums",
    "combination_sizes",
    "combinations",
    "combined",
    "empty_segments",
    "has_nan",
    "is_cut",
    "like",
    "lost_rows",
    "means",
    "says",
    "segment_sizes",
    "segments",
    "sizes_meet",
    "without",
]

#: How torch says that two tensors of one operation have different dtypes.
TWO_DTYPES = ("same scalar type", "same dtype", "dtypes match", "expected scalar type")

#: What every rank reports: the result, and the gradients.
Report = list[dict[str, Any]]


def segments(draw: Draw) -> Iterator[Case]:
    """Rows and the segments that they belong to, some of them empty."""
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


def combinations(draw: Draw) -> Iterator[Case]:
    """What experts give back, and the tokens that it belongs to."""
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


def _many(draw: Draw, length: int, places: int) -> tuple[int, ...]:
    """Random places, each with many duplicates."""
    return tuple((draw.tensor(Kind(torch.int64, (length,))) % places).tolist())


def _summed(rows: torch.Tensor, index: torch.Tensor, places: int) -> torch.Tensor:
    return rows.new_zeros(places, rows.shape[1]).index_add(0, index, rows)


def lost_rows(rows: torch.Tensor, index: torch.Tensor, places: int) -> torch.Tensor:
    """The last row of each place: what ``out[index] += rows`` leaves there."""
    out = rows.new_zeros(places, rows.shape[1])
    for i, row in zip(index, rows, strict=True):
        out[i] = row
    return out


def _report(c: Case, result: torch.Tensor, gradients: dict[str, torch.Tensor]) -> Report:
    """What every rank reports, in the dtype of the first argument; no gradient without rows."""
    first = next(iter(c.columns.values()))
    report = {"result": result.to(first.dtype)}
    if len(first):
        report |= {f"gradient of {name}": g.to(first.dtype) for name, g in gradients.items()}
    return [report] * c.n


def means(
    c: Case,
    divisor: Callable[[torch.Tensor], torch.Tensor] = lambda counts: counts.clamp(min=1),
    ids: torch.Tensor | None = None,
    add: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor] = _summed,
) -> Report:
    """Means, if sums are divided by this, and rows belong to these segments."""
    ids = c.segment_ids if ids is None else ids
    by = divisor(ids.bincount(minlength=c.num_segments)[:, None].double())
    result = add(c.values.double(), ids, c.num_segments) / by
    return _report(c, result, {"values": (c.cotangent.double() / by)[ids]})


def segment_sizes(c: Case) -> Report:
    """How large the terms are; sums may be differences of running ones, so all rows count."""
    counts = c.segment_ids.bincount(minlength=c.num_segments)[:, None].double()
    result = c.values.double().abs().sum(0) / counts.clamp(min=1) * (counts > 0)
    slopes = (c.cotangent.double().abs() / counts.clamp(min=1)).sum(0)
    return [{"result": result, "gradient of values": slopes.expand(c.values.shape)}] * c.n


def combined(
    c: Case,
    weight: torch.Tensor | None = None,
    add: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor] = _summed,
) -> Report:
    """Weighted sums of the rows of each token, if the rows had these weights."""
    weight = (c.weight if weight is None else weight).double()[:, None]
    rows, slopes = c.rows.double(), c.cotangent.double()[c.token_index]
    result = add(weight * rows, c.token_index, c.num_tokens)
    return _report(c, result, {"rows": weight * slopes, "weight": (rows * slopes).sum(1)})


def combination_sizes(c: Case) -> Report:
    """How large the terms are; sums may be differences of running ones, so all rows count."""
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
    """The sum of the weights of each token."""
    return _summed(c.weight.double()[:, None], c.token_index, c.num_tokens)[:, 0]


# What an answer shows. --------------------------------------------------------------


def like(mistake: Callable[[Case], Report]) -> Callable[[Evidence], bool]:
    """Recognises the result, gradients aside, of a mistake, whatever the order of additions."""

    def when(e: Evidence) -> bool:
        if e.diagnosis is not Diagnosis.WRONG_VALUE:
            return False
        wrong, actual = mistake(e.case)[0]["result"], e.actual[0]["result"]
        near = 64 * torch.finfo(wrong.dtype).eps
        return torch.allclose(actual, wrong, near, near, equal_nan=True)

    return when


def says(*words: str) -> Callable[[Evidence], bool]:
    """Recognises an exception by words of its message."""
    return lambda e: e.failure is not None and any(w in e.failure.message for w in words)


def sizes_meet(e: Evidence, one: int, other: int) -> bool:
    """Whether two tensors could not be combined since one has so many entries, the other so many.

    Tells nothing where both numbers are the same.
    """
    text = e.failure.message if e.failure is not None else ""
    found = re.search(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", text)
    return found is not None and {int(found[1]), int(found[2])} == {one, other} and one != other


def empty_segments(c: Case) -> torch.Tensor:
    """Which segments have no row."""
    empty: torch.Tensor = c.segment_ids.bincount(minlength=c.num_segments) == 0
    return empty


def along_columns(e: Evidence) -> bool:
    """Whether the weights of rows were taken for weights of columns, where these are as many."""
    c = e.case
    if e.diagnosis is not Diagnosis.WRONG_VALUE or c.rows.shape[0] != c.rows.shape[1]:
        return False
    wrong = _summed(c.rows * c.weight, c.token_index, c.num_tokens)
    return torch.allclose(e.actual[0]["result"], wrong)


def has_nan(e: Evidence, name: str) -> bool:
    """Whether an entry of what is reported holds nan."""
    return bool(e.actual[0][name].isnan().any())


def is_cut(e: Evidence, index: torch.Tensor, places: int) -> bool:
    """Whether the result ends with the last place that is named."""
    last = int(index.max()) + 1
    return e.diagnosis is Diagnosis.WRONG_SHAPE and len(e.actual[0]["result"]) == last < places


def without(e: Evidence, name: str) -> bool:
    """Whether no gradient reaches an argument."""
    return e.diagnosis is Diagnosis.WRONG_GRADIENT and e.actual[0][f"gradient of {name}"] is None
