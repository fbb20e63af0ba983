"""Chapter 17: a matrix product on several ranks, cut along its columns, inside, or by positions.

The oracles work on the whole tensors, in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import torch

from grader.course.chapters.evidence import forward_has_ended
from grader.exercise.cases import Case, Draw, Kind, PerRank
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import Limit, combined, moved, point, record_of
from grader.instruments import UNSEEN, differentiate, mark_end, mark_unseen_collectives
from headcount.core.verdict import Diagnosis

# What all four exercises share. -----------------------------------------------------

#: Collectives that answers call, allowed or not.
_COLLECTIVES = {"all_gather", "all_reduce", "all_to_all", "broadcast", "reduce", "reduce_scatter"}

#: The reports of all ranks: the result, and the gradients that are asked for.
Report = list[dict[str, Any]]

_FLOAT, _DOUBLE, _BRAIN = torch.float32, torch.float64, torch.bfloat16


def _cut(draw: Draw, whole: torch.Tensor, dim: int) -> PerRank:
    return PerRank(part.contiguous() for part in whole.tensor_split(draw.n, dim))


def _call(
    answer: Callable[..., Any], leaves: dict[str, int], arguments: list[Any], cotangent: Any
) -> dict[str, Any]:
    """Call the answer, mark its end, and differentiate it by its leaves if there are any."""
    if leaves:
        return differentiate(mark_end(answer), arguments, leaves, cotangent.clone())
    return {"result": answer(*arguments)}


# What an answer shows. --------------------------------------------------------------

Test = Callable[[Evidence], bool]


def _without(name: str) -> Test:
    """Make a test for a gradient that is asked for and that no rank has."""
    missing = f"gradient of {name}"
    return lambda e: (
        e.diagnosis is Diagnosis.WRONG_GRADIENT
        and not any(report[missing] is not None for report in e.actual)
    )


def _without_any(e: Evidence) -> bool:
    """Return whether none of the gradients that are asked for came back on any rank."""
    asked = [key for key in e.actual[0] if key.startswith("gradient of ")]
    return bool(asked) and all(_without(key.removeprefix("gradient of "))(e) for key in asked)


def _shards(c: Case) -> list[torch.Tensor]:
    """Return the parts by rank of the tensor or matrix that is cut."""
    if "weight_shard" in c.columns:
        return list(c.weight_shard)
    return list(c.x_shard) if "x_shard" in c.columns else list(c.x.tensor_split(c.n, c.along))


def _empty(c: Case) -> bool:
    """Return whether some rank has an empty part."""
    return not all(part.numel() for part in _shards(c))


def _partly_empty(c: Case) -> bool:
    """Return whether some ranks have an empty part and others have not."""
    return len({part.numel() > 0 for part in _shards(c)}) > 1


def _uneven(c: Case) -> bool:
    """Return whether the parts of the ranks differ in size."""
    return len({part.shape for part in _shards(c)}) > 1


def _not_single(c: Case) -> bool:
    """Return whether the numbers are of another dtype than torch's default."""
    return _shards(c)[0].dtype is not torch.float32


def _more_than_two(c: Case) -> bool:
    """Return whether the product has more than two dimensions."""
    return "weight_shard" in c.columns and c.cotangent.dim() > 2


def _asks_less(c: Case) -> bool:
    """Return whether not all inputs require a gradient."""
    return len(c.wanted) < 2 if "wanted" in c.columns else not _backward(c)


def _only_where(test: Callable[[Case], bool], *diagnoses: Diagnosis) -> Test:
    """Make a test of whether all cases that fail are of a kind, of which not all that pass are."""
    return lambda e: (
        e.diagnosis in diagnoses
        and all(test(one.case) for one in e.failed)
        and not all(test(one.case) for one in e.passed if one.case.n > 1)
    )


def _backward(c: Case) -> bool:
    """Return whether a gradient is asked for."""
    return bool(c.columns["wanted"]) if "wanted" in c.columns else c.cotangent is not None


def _only_backward(e: Evidence) -> bool:
    """Return whether forward alone passes on several ranks, and fails with backward."""
    forward = [one for one in e.judged if one.case.n > 1 and not _backward(one.case)]
    return bool(forward) and all(one.passed for one in forward) and _backward(e.case)


def _raised_in_forward(e: Evidence) -> bool:
    """Return whether the exception comes from a function that is called forward."""
    failure = e.here.failure
    return failure is not None and any(frame.function == "forward" for frame in failure.frames)


def _forbidden(*names: str) -> Test:
    """Make a test of whether a call is refused in an answer that calls one of these."""
    return lambda e: e.diagnosis is Diagnosis.FORBIDDEN_CALL and e.calls(*names)


# Mistakes in any of the four. -------------------------------------------------------


def _library(allowed: Set[str]) -> Mistake:
    """Make the mistake of a library's collective, in an answer that calls nothing forbidden."""
    return Mistake(
        "Is this torch.distributed.nn.functional, or one of its relatives? Their backward adds up"
        " the gradients of all ranks, because they expect every rank to have a loss of its own, and"
        " for that they call this collective. Here every rank computes the same loss: each has the"
        " whole gradient already, and only has to take its part. Write backward yourself, in a"
        " torch.autograd.Function.",
        when=lambda e: _forbidden(*allowed)(e) and not e.calls(*_COLLECTIVES - allowed),
    )


_ONE_DTYPE = Mistake(
    "It works in float32, and fails in another dtype. torch.zeros(shape) and torch.empty(shape)"
    " make float32 if no dtype is given, and so does .float() of any tensor; x.new_zeros(shape) and"
    " torch.empty_like(x) have the dtype of x.",
    when=_only_where(_not_single, Diagnosis.EXCEPTION, Diagnosis.WRONG_DTYPE),
)

_MATRICES = Mistake(
    "It works until there are more than two dimensions. torch.mm and .t() take matrices only: @"
    " multiplies along the last dimension, whatever stands before it.",
    when=lambda e: e.calls("mm", "t") and _only_where(_more_than_two, Diagnosis.EXCEPTION)(e),
)

_LAST = Mistake(
    "It works until there are more than two dimensions. Which line counts on two? The last"
    " dimension is −1, and not always 1.",
    when=_only_where(_more_than_two, Diagnosis.EXCEPTION),
)

_EMPTY = Mistake(
    "It works until some rank has nothing: with fewer columns, rows or positions than ranks its"
    " shard is empty. Is there a reshape(-1, 0), which cannot tell how long the other side is?"
    " flatten(0, -2) can.",
    when=_only_where(_empty, Diagnosis.EXCEPTION),
)

_SIZES = Mistake(
    "It works where n divides the length. gloo's all_gather takes pieces of one size only: pad"
    " every piece to the longest, and cut the padding off on arrival. The longest is -(-length //"
    " n); if no argument says what the length is, let the ranks tell each other theirs first.",
    when=_only_where(_uneven, Diagnosis.EXCEPTION, Diagnosis.SIZE_MISMATCH),
)

_FEWER = Mistake(
    "There are fewer pieces than ranks: chunk(n) and split make at most n, and fewer for many"
    " lengths (9 in 4 give 3). tensor_split(n) always gives n, some of them empty.",
    when=lambda e: e.raised("IndexError") and e.calls("chunk", "split"),
)

_HOOK = Mistake(
    "It works where every input requires a gradient. That is not always so (that of the first"
    " layer never does), and then a tensor cannot take a hook: look at requires_grad first, or use"
    " a torch.autograd.Function.",
    when=lambda e: e.calls("register_hook") and _only_where(_asks_less, Diagnosis.EXCEPTION)(e),
)

_DIM = Mistake(
    "It works where dim is given. It can be left out, and is 1 then: say dim=1 in the header.",
    when=_only_where(lambda c: not c.dim, Diagnosis.EXCEPTION),
)

_FORWARD_DIM = Mistake(
    "It works where dim is 1, and fails in forward where it is another. Which line there counts on"
    " dimension 1? Pad, gather and cut along dim.",
    when=lambda e: (
        _only_where(lambda c: c.along != 1, Diagnosis.EXCEPTION)(e) and _raised_in_forward(e)
    ),
)

_BACKWARD_DIM = Mistake(
    "It works where dim is 1, and backward raises where it is another: which line counts on"
    " dimension 1, in backward, or in forward, which does not raise? Both cut and join along dim,"
    " and forward keeps it for backward: ctx.dim = dim.",
    when=lambda e: (
        _only_where(lambda c: c.along != 1, Diagnosis.EXCEPTION)(e)
        and _only_backward(e)
        and forward_has_ended(e)
        and any(_backward(one.case) and one.case.along == 1 for one in e.passed if one.case.n > 1)
    ),
)

_BACKWARD = Mistake(
    "Forward alone works. backward returns one gradient for each argument of forward, in that"
    " order, and None for those that are not tensors; each has the shape of the argument that it"
    " belongs to, without padding.",
    # where autograd itself refuses a gradient, no line of the answer is running
    when=lambda e: (
        e.diagnosis is Diagnosis.EXCEPTION
        and _only_backward(e)
        and e.failure is not None
        and not e.failure.frames
    ),
)

_LEFT_OUT_EMPTY = Mistake(
    "Everything works until a rank has an empty shard: that rank leaves out a call that the others"
    " make. It takes part all the same, with its empty tensor, or with zeros where ranks add up.",
    # where the shards of all ranks are empty, nobody waits
    when=lambda e: (
        _only_where(_empty, Diagnosis.DEADLOCK)(e)
        and all(_partly_empty(one.case) for one in e.failed if one.diagnosis is e.diagnosis)
    ),
)

_LEFT_OUT_BACKWARD = Mistake(
    "Forward alone works: it is in backward that some rank leaves out a call that the others make,"
    " or makes one more. There, too, all ranks make the same calls in the same order.",
    when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and _only_backward(e) and forward_has_ended(e),
)

_OWN_PART = Mistake(
    "Forward works where the ranks' parts differ in length, and backward fails there. What it takes"
    " from the gradient is the rank's own part: it begins where the parts before it end, and is as"
    " long as this rank's part, without padding.",
    when=lambda e: (
        _only_where(_uneven, Diagnosis.EXCEPTION)(e)
        and _only_backward(e)
        and any(_uneven(one.case) and not _backward(one.case) for one in e.passed)
    ),
)

#: The particular ones come first.
_COMMON = (
    _ONE_DTYPE, _MATRICES, _LAST, _EMPTY, _FEWER, _SIZES, _HOOK, _DIM,
    _FORWARD_DIM, _BACKWARD_DIM, _BACKWARD, _LEFT_OUT_EMPTY, _LEFT_OUT_BACKWARD,
)  # fmt: skip


# A product, cut along its columns or its inner dimension. ---------------------------


def _sizes(
    n: int, first: str, second: str
) -> Iterator[tuple[torch.dtype, tuple[int, ...], int, int, tuple[str, ...]]]:
    """Yield dtype, leading shape, the dimension that stays, the one that is cut, and the leaves."""
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


def multiplied_in_rank(
    answer: Callable[..., Any], x: Any, weight_shard: Any, cotangent: Any, wanted: list[str]
) -> dict[str, Any]:
    """Call ``column_parallel`` or ``row_parallel``, and go backward from a gradient."""
    leaves = {name: int(name == "weight_shard") for name in wanted}
    return _call(answer, leaves, [x, weight_shard], cotangent)


def _whole(c: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x and the weight, put together again, in float64."""
    if "x" in c.columns:
        return c.x.double(), torch.cat(list(c.weight_shard), 1).double()
    return torch.cat(list(c.x_shard), -1).double(), torch.cat(list(c.weight_shard), 0).double()


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a matrix, with all dimensions but the last made one."""
    return tensor.double().flatten(0, -2)


def product(c: Case) -> torch.Tensor:
    """Return the whole product."""
    x, weight = _whole(c)
    return x @ weight


def pieces(c: Case, result: torch.Tensor, gradients: Mapping[str, list[torch.Tensor]]) -> Report:
    """Return every rank's report, in the dtype of its arguments."""
    dtype = c.cotangent.dtype
    return [
        {"result": result.to(dtype)}
        | {f"gradient of {name}": gradients[name][r].to(dtype) for name in c.wanted}
        for r in c.ranks
    ]


def terms(c: Case) -> int:
    """Return the largest number of terms of a sum, with one rounding for each rank's part."""
    x, weight = _whole(c)
    return int(max(*weight.shape, x[..., :1].numel())) + c.n + 1


def magnitudes(
    c: Case, gradients: Callable[[Case], Mapping[str, list[torch.Tensor]]]
) -> list[dict[str, torch.Tensor]]:
    """Return how large the terms are: the reports of the absolute values."""

    def positive(value: Any) -> Any:
        if isinstance(value, PerRank):
            return PerRank(part.double().abs() for part in value)
        return value.double().abs() if isinstance(value, torch.Tensor) else value

    bare = Case(c.name, c.n, {name: positive(value) for name, value in c.columns.items()})
    return pieces(bare, product(bare), gradients(bare))


def _first_row(report: dict[str, Any]) -> torch.Tensor:
    result: torch.Tensor = report["result"]
    return result.flatten(0, -2)[0]


# A product, cut along its columns. --------------------------------------------------


def columns(draw: Draw) -> Iterator[Case]:
    """Draw an x that is the same on every rank, and a weight that is cut by columns."""
    for dtype, front, inner, out, leaves in _sizes(draw.n, "x", "weight_shard"):
        weight = Kind(dtype, (inner, out))
        yield draw.case(
            _named("cut by columns", (*front, inner), weight, leaves),
            x=draw.tensor(Kind(dtype, (*front, inner))),
            weight_shard=_cut(draw, draw.tensor(weight), 1),
            cotangent=draw.tensor(Kind(dtype, (*front, out))),
            wanted=list(leaves),
        )


def column_gradients(c: Case) -> dict[str, list[torch.Tensor]]:
    """Return the gradients of each rank where the weight is cut by columns.

    That of ``x`` is the sum of what all ranks' columns contribute.
    """
    slopes = c.cotangent.double()
    own = slopes.tensor_split(c.n, -1)
    shards = [shard.double() for shard in c.weight_shard]
    parts = [slope @ shard.T for slope, shard in zip(own, shards, strict=True)]
    return {
        "x": [torch.stack(parts).sum(0)] * c.n,
        "weight_shard": [_flat(c.x).T @ _flat(slope) for slope in own],
    }


def least_of_columns(c: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that all ranks must receive: the other ranks' columns, in one row.

    It is one row only, since a rank that is sent the others' weights can compute all rows.
    """
    widths = [shard.shape[1] for shard in c.weight_shard]
    others = []
    for r in c.ranks:
        parts = list(torch.split(_first_row(expected[r]), widths))
        del parts[r]
        others.append(parts)
    return combined(c, others)


column_parallel = Exercise(
    signature="column_parallel(x: Tensor, weight_shard: Tensor) -> Tensor",
    summary="the whole product on every rank, of a weight whose columns are shared out",
    inputs=columns,
    adapter=multiplied_in_rank,
    values=Values(
        lambda c: pieces(c, product(c), column_gradients(c)),
        reduced=terms,
        magnitude=lambda c: magnitudes(c, column_gradients),
    ),
    traffic=TrafficRules(least=least_of_columns, allowed=frozenset({"all_gather", "all_reduce"})),
    mistakes=(
        Mistake(
            "No gradient comes back at all: all_gather fills buffers that autograd knows nothing"
            " about. Put the rank's own columns, which have a gradient, into their place among what"
            " was gathered; or write a torch.autograd.Function whose backward takes the rank's"
            " columns of the gradient.",
            when=lambda e: e.calls("all_gather") and _without_any(e),
        ),
        Mistake(
            "No gradient reaches weight_shard: it is used without its history (.detach(), .data,"
            " torch.no_grad()), or backward returns None for it.",
            when=_without("weight_shard"),
        ),
        Mistake(
            "No gradient reaches x: it is used without its history (.detach(), .data,"
            " torch.no_grad()), or backward returns None for it.",
            when=_without("x"),
        ),
        _library({"all_gather", "all_reduce"}),
        _OWN_PART,
        *_COMMON,
    ),
)


# A product, cut along its inner dimension. ------------------------------------------


def rows(draw: Draw) -> Iterator[Case]:
    """Draw x and a weight, both cut along the inner dimension."""
    for dtype, front, out, inner, leaves in _sizes(draw.n, "x_shard", "weight_shard"):
        weight = Kind(dtype, (inner, out))
        yield draw.case(
            _named("cut inside", (*front, inner), weight, leaves),
            x_shard=_cut(draw, draw.tensor(Kind(dtype, (*front, inner))), -1),
            weight_shard=_cut(draw, draw.tensor(weight), 0),
            cotangent=draw.tensor(Kind(dtype, (*front, out))),
            wanted=list(leaves),
        )


def summed_in_rank(
    answer: Callable[..., Any], x_shard: Any, weight_shard: Any, cotangent: Any, wanted: list[str]
) -> dict[str, Any]:
    """Call ``row_parallel``, and mark an all-reduce of a tensor that requires a gradient."""
    with mark_unseen_collectives() as looked_at:

        def watched(*shards: Any) -> Any:
            return looked_at(answer(*shards))

        return multiplied_in_rank(watched, x_shard, weight_shard, cotangent, wanted)


#: Collectives that autograd does not see.
_SEEN = Limit(
    "all-reduces that autograd does not see",
    lambda trace: sum(mark.text == UNSEEN for marks in record_of(trace).marks for mark in marks),
    "=",
    lambda case: 0,
    Diagnosis.WRONG_GRADIENT,
)


def row_gradients(c: Case) -> dict[str, list[torch.Tensor]]:
    """Return the gradients of each rank where the inner dimension is cut."""
    slopes = c.cotangent.double()
    return {
        "x_shard": [slopes @ shard.double().T for shard in c.weight_shard],
        "weight_shard": [_flat(shard).T @ _flat(slopes) for shard in c.x_shard],
    }


def least_of_rows(c: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that all ranks must receive: one row of the product, if others add to it."""
    inner = sum(len(shard) for shard in c.weight_shard)
    return combined(
        c,
        [
            _first_row(expected[r]) if len(shard) < inner else None
            for r, shard in enumerate(c.weight_shard)
        ],
    )


row_parallel = Exercise(
    signature="row_parallel(x_shard: Tensor, weight_shard: Tensor) -> Tensor",
    summary="the whole product on every rank, of two factors cut along the inner dimension",
    inputs=rows,
    adapter=summed_in_rank,
    traffic=TrafficRules(
        limits=(point(_SEEN),), least=least_of_rows, allowed=frozenset({"all_reduce"})
    ),
    values=Values(
        lambda c: pieces(c, product(c), row_gradients(c)),
        reduced=terms,
        magnitude=lambda c: magnitudes(c, row_gradients),
    ),
    mistakes=(
        Mistake(
            "The gradients are right, but by luck: dist.all_reduce wrote into its tensor and"
            " autograd did not see it. After an operation that remembers its result, such as relu,"
            " the same lines give a wrong gradient without a word. A torch.autograd.Function with a"
            " backward of its own is safe.",
            when=lambda e: e.here.limit is not None,
        ),
        Mistake(
            "No gradient comes back: what was reduced has lost its history (.detach(), .data,"
            " torch.no_grad(), a buffer). Reduce in a torch.autograd.Function whose backward passes"
            " the gradient on as it is.",
            when=_without_any,
        ),
        *(
            Mistake(
                f"No gradient reaches {name}: it is used without its history (.detach(), .data,"
                " torch.no_grad()).",
                when=lambda e, name=name: len(e.case.wanted) > 1 and _without(name)(e),  # type: ignore[misc]
            )
            for name in ("x_shard", "weight_shard")
        ),
        Mistake(
            "All dimensions but the last stay as they are: x_shard may have three of them, and so"
            " has the result.",
            when=_only_where(_more_than_two, Diagnosis.WRONG_SHAPE),
        ),
        _library({"all_reduce"}),
        *_COMMON,
    ),
)


# A tensor, cut along one of its dimensions. -----------------------------------------

#: Dtype, shape with 0 for the length, the dimension of the length (``None`` where it is not
#: passed, and so 1), and whether to go backward.
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
    """Yield name, kind, length, dimension, arguments for it, and whether to go backward."""
    for length, (dtype, shape, said, gradient) in _lengths(draw.n):
        dim = 1 if said is None else said
        whole = tuple(length if i == dim else s for i, s in enumerate(shape))
        kind = Kind(dtype, whole, special=length == 1000)
        how = f"along dim {dim}{' by default' if said is None else ''}"
        wanted = "with gradient" if gradient else "forward only"
        passed = [] if said is None else [said]
        yield f"{kind} {how}, {wanted}", kind, length, dim, passed, gradient


# A tensor's part on each rank. ------------------------------------------------------


def splits(draw: Draw) -> Iterator[Case]:
    """Draw a tensor that is the same on every rank; each rank's loss depends on its own part."""
    for name, kind, _, dim, passed, gradient in _along(draw):
        yield draw.case(
            name,
            x=draw.per_rank(kind)[0],
            dim=passed,
            along=dim,
            cotangent=_cut(draw, draw.tensor(replace(kind, special=False)), dim)
            if gradient
            else None,
        )


def split_in_rank(
    answer: Callable[..., Any], x: Any, dim: list[int], along: int, cotangent: Any
) -> dict[str, Any]:
    """Call ``sequence_shard``, and go backward from a gradient."""
    leaves = {} if cotangent is None else {"x": 0}
    return _call(answer, leaves, [x, *dim], cotangent)


def parts_of(c: Case) -> Report:
    """Return the part of x for every rank, and the whole gradient."""
    report: Report = [{"result": part} for part in c.x.tensor_split(c.n, c.along)]
    if c.cotangent is not None:
        whole = torch.cat(list(c.cotangent), c.along)
        report = [entry | {"gradient of x": whole} for entry in report]
    return report


sequence_shard = Exercise(
    signature="sequence_shard(x: Tensor, dim: int = 1) -> Tensor",
    summary="this rank's part of x along dim; backward puts all ranks' gradients together",
    inputs=splits,
    adapter=split_in_rank,
    values=Values(parts_of),
    traffic=TrafficRules(least=moved, allowed=frozenset({"all_gather"})),
    mistakes=(
        Mistake(
            "No gradient reaches x: it is used without its history (.detach(), .data,"
            " torch.no_grad()), or backward returns None.",
            when=_without("x"),
        ),
        Mistake(
            "An all_reduce of the part with zeros around it would give the whole gradient, and send"
            " twice as much as the gradient's parts need: gather them.",
            when=_forbidden("all_reduce"),
        ),
        _library({"all_gather"}),
        *_COMMON,
    ),
)


# The whole tensor, from its parts. --------------------------------------------------


def shards(draw: Draw) -> Iterator[Case]:
    """Draw a part for every rank; all ranks compute the same loss of the whole."""
    for name, kind, length, dim, passed, gradient in _along(draw):
        yield draw.case(
            name,
            x_shard=_cut(draw, draw.per_rank(kind)[0], dim),
            full_length=length,
            dim=passed,
            along=dim,
            cotangent=draw.tensor(replace(kind, special=False)) if gradient else None,
        )


def joined_in_rank(
    answer: Callable[..., Any],
    x_shard: Any,
    full_length: int,
    dim: list[int],
    along: int,
    cotangent: Any,
) -> dict[str, Any]:
    """Call ``sequence_unshard``, and go backward from a gradient."""
    leaves = {} if cotangent is None else {"x_shard": 0}
    return _call(answer, leaves, [x_shard, full_length, *dim], cotangent)


def whole_of(c: Case) -> Report:
    """Return the whole for every rank, and the rank's part of the gradient."""
    report: Report = [{"result": torch.cat(list(c.x_shard), c.along)} for _ in c.ranks]
    if c.cotangent is not None:
        slopes = c.cotangent.tensor_split(c.n, c.along)
        for entry, slope in zip(report, slopes, strict=True):
            entry["gradient of x_shard"] = slope
    return report


def _added_up(e: Evidence) -> bool:
    """Return whether backward gives a wrong gradient for parts of one position, or raises."""
    wrong = [one for one in e.failed if one.diagnosis is Diagnosis.WRONG_GRADIENT]
    single = all(part.shape[one.case.along] <= 1 for one in wrong for part in one.case.x_shard)
    kinds = {one.diagnosis for one in e.failed}
    return kinds == {Diagnosis.WRONG_GRADIENT, Diagnosis.EXCEPTION} and single and _only_backward(e)


sequence_unshard = Exercise(
    signature="sequence_unshard(x_shard: Tensor, full_length: int, dim: int = 1) -> Tensor",
    summary="the whole of which each rank has a part along dim; backward takes the part",
    inputs=shards,
    adapter=joined_in_rank,
    values=Values(whole_of),
    traffic=TrafficRules(least=moved, allowed=frozenset({"all_gather"})),
    mistakes=(
        Mistake(
            "It works along dimension 0. Which line takes dimension 0 for dim? torch.cat does if no"
            " other is given, and so does a slice such as x[:k].",
            when=_only_where(lambda c: c.along != 0, Diagnosis.EXCEPTION),
        ),
        Mistake(
            "No gradient comes back: all_gather fills buffers that autograd knows nothing about."
            " Put the rank's own part, which has a gradient, into its place among what was"
            " gathered; or write a torch.autograd.Function whose backward takes the rank's part of"
            " the gradient.",
            when=_without("x_shard"),
        ),
        Mistake(
            "backward returns a gradient of another shape than that of x_shard: autograd has added"
            " it up where the part is one position long, and refuses it elsewhere. Only the rank's"
            " own part of the whole gradient belongs to x_shard.",
            when=_added_up,
        ),
        Mistake(
            "Adding up in backward is wrong here: each rank has the whole gradient already.",
            when=lambda e: (
                _forbidden("all_reduce")(e)
                and _backward(e.case)
                and not all(_backward(one.case) for one in e.passed)
            ),
        ),
        Mistake(
            "An all_reduce of the part with zeros around it would give the whole, and send twice as"
            " much as the parts need: gather them.",
            when=lambda e: _forbidden("all_reduce")(e) and not _backward(e.case),
        ),
        _library({"all_gather"}),
        _OWN_PART,
        *_COMMON,
    ),
)
