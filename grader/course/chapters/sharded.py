"""What the sharded products of chapter 17 are asked: inputs, calls, oracles, sizes.

All is worked out in one process, on the whole tensors.  A product is cut along its
columns or along its inner dimension; a tensor of positions along one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from grader.course.cases import Case, Draw, Kind, PerRank
from grader.course.limits import combined
from grader.rank.instrumentation import differentiated
from grader.trace.trace import Trace

__all__ = [
    "Report",
    "column_gradients",
    "columns",
    "joined_in_rank",
    "least_of_columns",
    "least_of_rows",
    "magnitudes",
    "multiplied_in_rank",
    "parts_of",
    "pieces",
    "product",
    "row_gradients",
    "rows",
    "shards",
    "split_in_rank",
    "splits",
    "summed_in_rank",
    "terms",
    "unseen",
    "whole_of",
]

#: What every rank reports: the result, and the gradients that are wanted.
Report = list[dict[str, Any]]

_FLOAT, _DOUBLE, _BRAIN = torch.float32, torch.float64, torch.bfloat16


def _call(
    answer: Callable[..., Any], leaves: dict[str, int], arguments: list[Any], cotangent: Any
) -> dict[str, Any]:
    """The result and its gradients; without leaves nothing requires a gradient."""
    if leaves:
        return differentiated(answer, arguments, leaves, cotangent.clone())
    return {"result": answer(*arguments)}


def multiplied_in_rank(
    answer: Callable[..., Any], x: Any, weight_shard: Any, cotangent: Any, wanted: list[str]
) -> dict[str, Any]:
    """Call ``column_parallel`` or ``row_parallel`` and pull a gradient back."""
    leaves = {name: int(name == "weight_shard") for name in wanted}
    return _call(answer, leaves, [x, weight_shard], cotangent)


#: The mark of a collective that wrote into a tensor whose history autograd keeps.
UNSEEN = "a collective that autograd does not see"


def summed_in_rank(
    answer: Callable[..., Any], x_shard: Any, weight_shard: Any, cotangent: Any, wanted: list[str]
) -> dict[str, Any]:
    """Call ``row_parallel``, and notice an all-reduce of what autograd takes for the product."""
    group: Any = dist.group.WORLD
    original = group.allreduce

    def noticed(tensors: Any, *options: Any) -> Any:
        # in a torch.autograd.Function nothing is recorded, since its backward says it all
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            group.mark(UNSEEN)
        return original(tensors, *options)

    group.allreduce = noticed
    try:
        return multiplied_in_rank(answer, x_shard, weight_shard, cotangent, wanted)
    finally:
        del group.allreduce


def unseen(c: Case, trace: Trace) -> str:
    """What to say of right gradients that come from autograd not seeing the sum."""
    if not any(mark.text == UNSEEN for marks in trace.marks for mark in marks):
        return ""
    return (
        "The gradients are right, but by luck: dist.all_reduce wrote into its tensor and autograd"
        " did not see it. Autograd takes the sum for this rank's own product and passes the"
        " gradient on unchanged, which happens to be the right backward here. After an operation"
        " that remembers its result, such as relu, the same lines give a wrong gradient without a"
        " word. A torch.autograd.Function with a backward of its own is safe."
    )


# A product, cut along its columns or its inner dimension. ----------------------------


def _sizes(
    n: int, first: str, second: str
) -> Iterator[tuple[torch.dtype, tuple[int, ...], int, int, tuple[str, ...]]]:
    """dtype, shape in front, the dimension that stays, the one that is cut, what is a leaf."""
    both = (first, second)
    yield _FLOAT, (3,), 4, 7, ()
    yield _DOUBLE, (3,), 4, n, both
    yield _FLOAT, (2, 3), 5, n + 1, both
    yield _DOUBLE, (4,), 3, n - 1, both
    yield _FLOAT, (2,), 3, 1, (second,)
    yield _DOUBLE, (2, 2), 3, 1000, both
    yield _BRAIN, (3,), 2, 2 * n, both
    yield _DOUBLE, (2,), 3, 7, (first,)
    yield _FLOAT, (3,), 2, 0, both


def _named(what: str, shape: tuple[int, ...], weight: Kind, leaves: tuple[str, ...]) -> str:
    wanted = f"gradient of {' and '.join(leaves)}" if leaves else "forward only"
    return f"{'×'.join(map(str, shape))} times {weight}, {what}; {wanted}"


def columns(draw: Draw) -> Iterator[Case]:
    """x, the same on every rank, and a weight whose columns are shared out."""
    for dtype, front, inner, out, leaves in _sizes(draw.n, "x", "weight_shard"):
        weight = Kind(dtype, (inner, out))
        yield draw.case(
            _named("cut by columns", (*front, inner), weight, leaves),
            x=draw.tensor(Kind(dtype, (*front, inner))),
            weight_shard=_cut(draw, draw.tensor(weight), 1),
            cotangent=draw.tensor(Kind(dtype, (*front, out))),
            wanted=list(leaves),
        )


def rows(draw: Draw) -> Iterator[Case]:
    """x and a weight, both cut along the inner dimension."""
    for dtype, front, out, inner, leaves in _sizes(draw.n, "x_shard", "weight_shard"):
        weight = Kind(dtype, (inner, out))
        yield draw.case(
            _named("cut inside", (*front, inner), weight, leaves),
            x_shard=_cut(draw, draw.tensor(Kind(dtype, (*front, inner))), -1),
            weight_shard=_cut(draw, draw.tensor(weight), 0),
            cotangent=draw.tensor(Kind(dtype, (*front, out))),
            wanted=list(leaves),
        )


def _cut(draw: Draw, whole: torch.Tensor, dim: int) -> PerRank:
    return PerRank(part.contiguous() for part in whole.tensor_split(draw.n, dim))


def _whole(c: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """x and the weight, put together again, in float64."""
    if "x" in c.columns:
        return c.x.double(), torch.cat(list(c.weight_shard), 1).double()
    return torch.cat(list(c.x_shard), -1).double(), torch.cat(list(c.weight_shard), 0).double()


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """As a matrix: all dimensions but the last made one."""
    return tensor.double().flatten(0, -2)


def product(c: Case) -> torch.Tensor:
    """The whole product."""
    x, weight = _whole(c)
    return x @ weight


def column_gradients(c: Case) -> dict[str, list[torch.Tensor]]:
    """For each rank, the gradients where columns are shared out.

    ``x``, and ``part of x``: what a rank's own columns bring to it.
    """
    slopes = c.cotangent.double()
    own = slopes.tensor_split(c.n, -1)
    shards = [shard.double() for shard in c.weight_shard]
    parts = [slope @ shard.T for slope, shard in zip(own, shards, strict=True)]
    return {
        "x": [torch.stack(parts).sum(0)] * c.n,
        "part of x": parts,
        "weight_shard": [_flat(c.x).T @ _flat(slope) for slope in own],
    }


def row_gradients(c: Case) -> dict[str, list[torch.Tensor]]:
    """For each rank, the gradients where the inner dimension is shared out."""
    slopes = c.cotangent.double()
    return {
        "x_shard": [slopes @ shard.double().T for shard in c.weight_shard],
        "weight_shard": [_flat(shard).T @ _flat(slopes) for shard in c.x_shard],
    }


def pieces(c: Case, result: torch.Tensor, gradients: Mapping[str, list[torch.Tensor]]) -> Report:
    """What every rank reports, in the dtype of its arguments."""
    dtype = c.cotangent.dtype
    return [
        {"result": result.to(dtype)}
        | {f"gradient of {name}": gradients[name][r].to(dtype) for name in c.wanted}
        for r in c.ranks
    ]


def terms(c: Case) -> int:
    """How many numbers are added up at most, the rounding of every rank's part included."""
    x, weight = _whole(c)
    return int(max(*weight.shape, x[..., :1].numel())) + c.n + 1


def magnitudes(
    c: Case, gradients: Callable[[Case], Mapping[str, list[torch.Tensor]]]
) -> list[dict[str, torch.Tensor]]:
    """How large the terms are: the same of the absolute values."""

    def positive(value: Any) -> Any:
        if isinstance(value, PerRank):
            return PerRank(part.double().abs() for part in value)
        return value.double().abs() if isinstance(value, torch.Tensor) else value

    bare = Case(c.name, c.n, {name: positive(value) for name, value in c.columns.items()})
    return pieces(bare, product(bare), gradients(bare))


def least_of_columns(c: Case, expected: Sequence[Any]) -> int:
    """What a rank cannot know: the columns of the others, in one row.

    One row only: who is sent the others' weights instead knows all rows at once.
    """
    widths = [shard.shape[1] for shard in c.weight_shard]
    told = []
    for r in c.ranks:
        parts = list(torch.split(_first_row(expected[r]), widths))
        del parts[r]
        told.append(parts)
    return combined(c, told)


def least_of_rows(c: Case, expected: Sequence[Any]) -> int:
    """What a rank cannot know: one row of the product, if others have a part in it."""
    inner = sum(len(shard) for shard in c.weight_shard)
    return combined(
        c,
        [
            _first_row(expected[r]) if len(shard) < inner else None
            for r, shard in enumerate(c.weight_shard)
        ],
    )


def _first_row(report: dict[str, Any]) -> torch.Tensor:
    result: torch.Tensor = report["result"]
    return result.flatten(0, -2)[0]


# A tensor, cut along one of its dimensions. ------------------------------------------

#: dtype, shape with a hole for the length, the dimension of the hole (``None``: not said,
#: so 1), and whether a gradient is wanted.
_Shape = tuple[torch.dtype, tuple[int, ...], int | None, bool]


def _lengths(n: int) -> Iterator[tuple[int, _Shape]]:
    yield 7, (_FLOAT, (2, 0, 3), None, False)
    yield n, (_DOUBLE, (2, 0, 3), 1, True)
    yield n + 1, (_FLOAT, (0, 3), 0, True)
    yield n - 1, (_DOUBLE, (2, 0, 3), None, True)
    yield 1, (_FLOAT, (3, 0), 1, True)
    yield 1000, (_FLOAT, (2, 3, 0), 2, True)
    yield 2 * n + 1, (_BRAIN, (3, 0, 2), 1, True)
    yield 9, (torch.int64, (2, 0), 1, False)
    yield 0, (_FLOAT, (2, 0, 3), 1, True)


def _along(draw: Draw) -> Iterator[tuple[str, Kind, int, int, list[Any], bool]]:
    """Name, kind, length, dimension, what is passed for it, and whether gradients are wanted."""
    for length, (dtype, shape, said, gradient) in _lengths(draw.n):
        dim = 1 if said is None else said
        kind = Kind(dtype, tuple(length if i == dim else s for i, s in enumerate(shape)))
        how = f"along dim {dim}{' by default' if said is None else ''}"
        wanted = "with gradient" if gradient else "forward only"
        passed = [] if said is None else [said]
        yield f"{kind} {how}, {wanted}", kind, length, dim, passed, gradient


def splits(draw: Draw) -> Iterator[Case]:
    """A tensor, the same on every rank; each rank's loss depends on its own part."""
    for name, kind, _, dim, passed, gradient in _along(draw):
        yield draw.case(
            name,
            x=draw.tensor(kind),
            dim=passed,
            along=dim,
            cotangent=_cut(draw, draw.tensor(kind), dim) if gradient else None,
        )


def shards(draw: Draw) -> Iterator[Case]:
    """A part on every rank; all compute the same loss of the whole."""
    for name, kind, length, dim, passed, gradient in _along(draw):
        yield draw.case(
            name,
            x_shard=_cut(draw, draw.tensor(kind), dim),
            full_length=length,
            dim=passed,
            along=dim,
            cotangent=draw.tensor(kind) if gradient else None,
        )


def split_in_rank(
    answer: Callable[..., Any], x: Any, dim: list[int], along: int, cotangent: Any
) -> dict[str, Any]:
    """Call ``sequence_shard`` and pull a gradient back."""
    leaves = {} if cotangent is None else {"x": 0}
    return _call(answer, leaves, [x, *dim], cotangent)


def joined_in_rank(
    answer: Callable[..., Any],
    x_shard: Any,
    full_length: int,
    dim: list[int],
    along: int,
    cotangent: Any,
) -> dict[str, Any]:
    """Call ``sequence_unshard`` and pull a gradient back."""
    leaves = {} if cotangent is None else {"x_shard": 0}
    return _call(answer, leaves, [x_shard, full_length, *dim], cotangent)


def parts_of(c: Case) -> Report:
    """A part of x for every rank; and the whole gradient, which is all ranks' put together."""
    report: Report = [{"result": part} for part in c.x.tensor_split(c.n, c.along)]
    if c.cotangent is not None:
        whole = torch.cat(list(c.cotangent), c.along)
        report = [entry | {"gradient of x": whole} for entry in report]
    return report


def whole_of(c: Case) -> Report:
    """The whole for every rank; and of the gradient, the rank's part."""
    report: Report = [{"result": torch.cat(list(c.x_shard), c.along)} for _ in c.ranks]
    if c.cotangent is not None:
        slopes = c.cotangent.tensor_split(c.n, c.along)
        for entry, slope in zip(report, slopes, strict=True):
            entry["gradient of x_shard"] = slope
    return report
