"""Chapter 17: a matrix product on several ranks, cut along its columns, inside, or by positions.

The oracles work on the whole tensors, in one process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind, PerRank
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.course.limits import combined, moved
from grader.rank.instrumentation import UNSEEN, differentiated, noticing_unseen
from grader.trace.trace import Trace

# What all four exercises share. -----------------------------------------------------

#: The reports of all ranks: the result, and the gradients that are asked for.
Report = list[dict[str, Any]]

_FLOAT, _DOUBLE, _BRAIN = torch.float32, torch.float64, torch.bfloat16


def _cut(draw: Draw, whole: torch.Tensor, dim: int) -> PerRank:
    return PerRank(part.contiguous() for part in whole.tensor_split(draw.n, dim))


def _call(
    answer: Callable[..., Any], leaves: dict[str, int], arguments: list[Any], cotangent: Any
) -> dict[str, Any]:
    """Call the answer, and differentiate it by its leaves if there are any."""
    if leaves:
        return differentiated(answer, arguments, leaves, cotangent.clone())
    return {"result": answer(*arguments)}


_DEADLOCK = (
    "Every rank makes the same calls in the same order, in backward as well. Which one does some"
    " rank leave out?"
)

_DTYPE = (
    "The result has the dtype of what came in. Where does another one come from: a buffer made"
    " without it, or a conversion?"
)

_TIMEOUT = (
    "Does the loop at that line ever end? Or does it call the functional collectives of torch?"
    " Those load torch's compiler first, which takes longer than a call may take: use"
    " dist.all_reduce and dist.all_gather in a torch.autograd.Function."
)


# What an answer shows. --------------------------------------------------------------

Test = Callable[[Evidence], bool]


def _gradient(name: str, wrong: Callable[[Case], Sequence[torch.Tensor]]) -> Test:
    """Make a test for this wrong gradient on every rank."""

    def when(e: Evidence) -> bool:
        found = [report[f"gradient of {name}"] for report in e.actual]
        return e.diagnosis is Diagnosis.WRONG_GRADIENT and _alike(found, wrong(e.case))

    return when


def _values(wrong: Callable[[Case], Sequence[torch.Tensor]]) -> Test:
    """Make a test for this wrong result on every rank."""

    def when(e: Evidence) -> bool:
        found = [report["result"] for report in e.actual]
        wanted = (Diagnosis.WRONG_VALUE, Diagnosis.WRONG_SHAPE)
        return e.diagnosis in wanted and _alike(found, wrong(e.case))

    return when


def _alike(found: Sequence[torch.Tensor], wrong: Sequence[torch.Tensor]) -> bool:
    def near(a: torch.Tensor, b: torch.Tensor) -> bool:
        off = 256 * torch.finfo(a.dtype).eps if a.is_floating_point() else 0.0
        return a.shape == b.shape and torch.allclose(a.double(), b.double(), off, off)

    return all(near(a, b) for a, b in zip(found, wrong, strict=True))


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


def _uneven(e: Evidence) -> bool:
    """Return whether the parts of the ranks differ in size."""
    return len({part.shape for part in _shards(e.case)}) > 1


def _only_empty(e: Evidence) -> bool:
    """Return whether just those cases fail in which some ranks have an empty part."""

    def partly(c: Case) -> bool:
        empty = [not part.numel() for part in _shards(c)]
        return any(empty) and not all(empty)

    full = [one for one in e.passed if one.case.n > 1 and not partly(one.case)]
    return bool(full) and all(partly(one.case) for one in e.failed)


def _backward(c: Case) -> bool:
    """Return whether a gradient is asked for."""
    return bool(c.columns["wanted"]) if "wanted" in c.columns else c.cotangent is not None


def _only_backward(e: Evidence) -> bool:
    """Return whether forward alone passes on several ranks, and fails with backward."""
    forward = [one for one in e.judged if one.case.n > 1 and not _backward(one.case)]
    return bool(forward) and all(one.passed for one in forward) and _backward(e.case)


def _raised(*words: str) -> Test:
    return lambda e: any(map(e.says, words))


def _times_n(
    gradients: Callable[[Case], dict[str, list[torch.Tensor]]], name: str, power: int = 1
) -> Test:
    return _gradient(name, lambda c: [g * float(c.n) ** power for g in gradients(c)[name]])


def _some_forbidden(*kinds: str) -> Test:
    # match whole names: all_reduce contains reduce
    pattern = re.compile(rf"\b({'|'.join(kinds)}) is a collective")
    return lambda e: (
        e.diagnosis is Diagnosis.FORBIDDEN_CALL
        and bool(e.failure and pattern.search(e.failure.message))
    )


# Mistakes in any of the four. -------------------------------------------------------

_LIBRARY = Mistake(
    "Is this torch.distributed.nn.functional, or one of its relatives? Their backward adds up the"
    " gradients of all ranks, because they expect every rank to have a loss of its own, and for"
    " that they call this collective. Here every rank computes the same loss: each has the whole"
    " gradient already, and only has to take its part. Write backward yourself, in a"
    " torch.autograd.Function.",
    when=_some_forbidden("scatter", "reduce_scatter", "all_to_all", "reduce"),
)

_SIZES = Mistake(
    "gloo's all_gather takes pieces of one size only, and here n does not divide the length. Pad"
    " every piece to the longest, which is -(-length // n), and cut the padding off on arrival.",
    when=lambda e: (
        _uneven(e)
        and (
            _raised("needs tensors of one size")(e)
            or (e.diagnosis is Diagnosis.SIZE_MISMATCH and e.says("all_gather"))
        )
    ),
)

_FEWER = Mistake(
    "There are fewer pieces than ranks: chunk(n) and split make at most n, and fewer for many"
    " lengths (9 in 4 give 3). tensor_split(n) always gives n, some of them empty.",
    when=lambda e: e.calls("chunk", "split") and _raised("out of range", "tensors; a group of")(e),
)

_NUMBER_OF_GRADIENTS = Mistake(
    "backward returns one gradient for each argument of forward, in that order, and None for those"
    " that are not tensors: count both.",
    when=_raised("incorrect number of gradients"),
)

_SHAPE_OF_GRADIENT = Mistake(
    "The gradient that backward returns has the shape of the argument that it belongs to: without"
    " padding, and for a rank's own part that part alone.",
    when=_raised("invalid gradient"),
)

_SHAPE_OF_WHOLE_GRADIENT = Mistake(
    "The gradient that backward returns for x has the shape of x: all parts side by side along dim,"
    " each cut to its own length first.",
    when=_raised("invalid gradient"),
)

_MATRICES = Mistake(
    "There may be more than two dimensions, and torch.mm and .t() take matrices only: @ multiplies"
    " along the last dimension, whatever stands before it.",
    when=_raised("must be a matrix", "expects a tensor with <= 2 dimensions"),
)

_LEFT_OUT_EMPTY = Mistake(
    "Everything works until a rank has an empty shard: that rank leaves out a call that the others"
    " make. It has to take part all the same, with an empty tensor.",
    when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and _only_empty(e),
)

_LEFT_OUT_BACKWARD = Mistake(
    "Forward alone works: it is in backward that some rank leaves out a call that the others make,"
    " or makes one more. There, too, all ranks make the same calls in the same order.",
    when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and not _only_empty(e) and _only_backward(e),
)

_EMPTY = Mistake(
    "Some rank may have nothing: with fewer columns, rows or positions than ranks its shard is"
    " empty, and reshape(-1, 0) cannot tell how long the other side is. flatten(0, -2) can.",
    when=_raised("cannot reshape tensor of 0 elements", "unspecified dimension size -1"),
)

_HOOK = Mistake(
    "The input does not always require a gradient (that of the first layer never does), and then"
    " it cannot take a hook: look at requires_grad first, or use a torch.autograd.Function.",
    when=_raised("cannot register a hook"),
)

_IN_PLACE = Mistake(
    "The arguments belong to the caller, who asks for their gradients: do not write into them. Make"
    " new tensors.",
    when=_raised("a leaf Variable that requires grad"),
)

_BUFFERS = Mistake(
    "Two dtypes meet there. Buffers need the dtype of what goes into them: x.new_zeros(shape) and"
    " torch.empty_like(x) have it, torch.zeros(shape) alone makes float32.",
    when=_raised("dtype", "scalar type", "tensor type"),
)

_CONVERTED = Mistake(
    ".float() makes float32 of every tensor. The result has the dtype of what came in: leave the"
    " conversion out.",
    when=lambda e: e.diagnosis is Diagnosis.WRONG_DTYPE and e.calls("float"),
)

_DEFAULT = Mistake(
    "torch.zeros and torch.empty make float32 if no dtype is given: x.new_zeros(shape) and"
    " torch.empty_like(x) have that of x.",
    when=lambda e: (
        e.diagnosis is Diagnosis.WRONG_DTYPE
        and e.calls("torch.zeros", "torch.empty", "torch.ones")
        and not e.written("dtype=")
    ),
)

_UNWRITTEN = Mistake(
    "Without a backward of its own a torch.autograd.Function has no gradient: write backward(ctx,"
    " grad), which returns a gradient, or None, for each argument of forward.",
    when=_raised("backward is not written yet"),
)

_DIM = Mistake(
    "dim can be left out, and is 1 then: say dim=1 in the header.", when=_raised("argument: 'dim'")
)

_COMMON = (
    _LIBRARY, _SIZES, _FEWER, *evidence.NOT_IN_ONE_PIECE, _NUMBER_OF_GRADIENTS,
    _SHAPE_OF_GRADIENT, _EMPTY, _MATRICES, _HOOK, _IN_PLACE, _BUFFERS, _CONVERTED, _DEFAULT,
    _UNWRITTEN, _DIM, _LEFT_OUT_EMPTY, _LEFT_OUT_BACKWARD,
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

    ``part of x`` is what the rank's own columns contribute to the gradient of ``x``.
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


def _padded_inside(c: Case) -> list[torch.Tensor]:
    """Return every rank's padded columns, with the padding cut off at the very end only."""
    longest = -(-sum(w.shape[1] for w in c.weight_shard) // c.n)
    parts = [c.x.double() @ w.double() for w in c.weight_shard]
    padded = [torch.nn.functional.pad(p, (0, longest - p.shape[-1])) for p in parts]
    return [torch.cat(padded, -1)[..., : c.cotangent.shape[-1]]] * c.n


def _columns_reversed(c: Case) -> list[torch.Tensor]:
    """Return the product with the columns of the last rank first."""
    parts = [c.x.double() @ w.double() for w in c.weight_shard]
    return [torch.cat(parts[::-1], -1)] * c.n


_times_n_of_weight = _times_n(column_gradients, "weight_shard")

_times_n_of_x = _times_n(column_gradients, "x")

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
            "Every rank has its own columns of the product and no others: gather them, and put"
            " them side by side along the last dimension.",
            when=_values(lambda c: [c.x.double() @ w.double() for w in c.weight_shard]),
        ),
        Mistake(
            "There is padding inside the result. Cut the padding off each piece before you put them"
            " together, not off the end.",
            when=lambda e: e.case.n > 1 and _values(_padded_inside)(e),
        ),
        Mistake(
            "The columns of the last rank come first. In the whole weight, those of rank 0 do.",
            when=lambda e: e.case.n > 1 and _values(_columns_reversed)(e),
        ),
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
        Mistake(
            "The gradient of x is what this rank's own columns contribute, G_r W_rᵀ. The whole"
            " weight has other columns, too: add up all ranks' parts, with an all_reduce in"
            " backward.",
            when=_gradient("x", lambda c: column_gradients(c)["part of x"]),
        ),
        Mistake(
            "The gradient of x is divided by n. Every rank contributes another part of it: these"
            " are added up, and not averaged.",
            when=_times_n(column_gradients, "x", -1),
        ),
        Mistake(
            "A gradient is n times too large: the gradient of the gathered product was added up"
            " over ranks. Every rank computes the same loss, so each has the whole of that"
            " gradient already: in backward take its own columns out of it, and send nothing.",
            when=_times_n_of_weight,
        ),
        Mistake(
            "The gradient of x is n times too large, as if what the ranks contribute were added up"
            " once too often. One all_reduce of G_r W_rᵀ is enough.",
            when=lambda e: _times_n_of_x(e) and not _times_n_of_weight(e),
        ),
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
    with noticing_unseen():
        return multiplied_in_rank(answer, x_shard, weight_shard, cotangent, wanted)


def unseen(c: Case, trace: Trace) -> str:
    """Return a remark on gradients that are right only because autograd misses the sum."""
    if not any(mark.text == UNSEEN for marks in trace.marks for mark in marks):
        return ""
    return (
        "The gradients are right, but by luck: dist.all_reduce wrote into its tensor and autograd"
        " did not see it. Autograd takes the sum for this rank's own product and passes the"
        " gradient on unchanged, which happens to be the right backward here. After an operation"
        " that remembers its result, such as relu, the same lines give a wrong gradient without a"
        " word. A torch.autograd.Function with a backward of its own is safe."
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


def _flat_rows(c: Case) -> int:
    """Return how many rows x has if all its dimensions but the last are made one."""
    return int(c.cotangent.flatten(0, -2).shape[0])


row_parallel = Exercise(
    signature="row_parallel(x_shard: Tensor, weight_shard: Tensor) -> Tensor",
    summary="the whole product on every rank, of two factors cut along the inner dimension",
    inputs=rows,
    adapter=summed_in_rank,
    traffic=TrafficRules(least=least_of_rows, remark=unseen, allowed=frozenset({"all_reduce"})),
    values=Values(
        lambda c: pieces(c, product(c), row_gradients(c)),
        reduced=terms,
        magnitude=lambda c: magnitudes(c, row_gradients),
    ),
    mistakes=(
        Mistake(
            "Every rank has only what its own part of the inner dimension contributes. The product"
            " is the sum of these: all_reduce it.",
            when=_values(
                lambda c: [
                    x.double() @ w.double() for x, w in zip(c.x_shard, c.weight_shard, strict=True)
                ]
            ),
        ),
        Mistake(
            "The product is divided by n. The inner dimension is summed over: the parts are added"
            " up, and not averaged.",
            when=_values(lambda c: [product(c) / c.n] * c.n),
        ),
        Mistake(
            "The gradients are n times too large. Every rank computes the same loss, so each has"
            " the whole gradient of the sum, and that is the gradient of every term: backward"
            " passes it on as it is. An all_reduce in backward adds up n copies of it;"
            " that is what torch.distributed.nn.functional.all_reduce does.",
            when=lambda e: (
                _times_n(row_gradients, "x_shard")(e) or _times_n(row_gradients, "weight_shard")(e)
            ),
        ),
        Mistake(
            "The gradients are divided by n. Every term of a sum has the gradient of the sum, not a"
            " share of it.",
            when=lambda e: (
                _times_n(row_gradients, "x_shard", -1)(e)
                or _times_n(row_gradients, "weight_shard", -1)(e)
            ),
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
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_SHAPE
                and e.case.x_shard[0].dim() > 2
                and e.actual[0]["result"].shape == (_flat_rows(e.case), e.case.cotangent.shape[-1])
            ),
        ),
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
        kind = Kind(dtype, tuple(length if i == dim else s for i, s in enumerate(shape)))
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
            x=draw.tensor(kind),
            dim=passed,
            along=dim,
            cotangent=_cut(draw, draw.tensor(kind), dim) if gradient else None,
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


def _zeros_around(c: Case) -> list[torch.Tensor]:
    """Return autograd's own gradient of a slice: the rank's part of it, and zeros."""
    grads = []
    for r in c.ranks:
        parts = [part if i == r else part * 0 for i, part in enumerate(c.cotangent)]
        grads.append(torch.cat(parts, c.along))
    return grads


def _shard_scaled(by: float) -> Test:
    return _gradient("x", lambda c: [entry["gradient of x"] * by for entry in parts_of(c)])


sequence_shard = Exercise(
    signature="sequence_shard(x: Tensor, dim: int = 1) -> Tensor",
    summary="this rank's part of x along dim; backward puts all ranks' gradients together",
    inputs=splits,
    adapter=split_in_rank,
    values=Values(parts_of),
    traffic=TrafficRules(least=moved, allowed=frozenset({"all_gather"})),
    mistakes=(
        Mistake(
            "The gradient of x holds this rank's part, and zeros. x went into the losses of all"
            " ranks, into each through another part: gather those parts in backward, in a"
            " torch.autograd.Function.",
            when=_gradient("x", _zeros_around),
        ),
        Mistake(
            "The gradient of x is scaled by the number of ranks. Each part of it comes from one"
            " rank alone: put them side by side; nothing is added up or averaged.",
            when=lambda e: _shard_scaled(e.case.n)(e) or _shard_scaled(1 / e.case.n)(e),
        ),
        Mistake(
            "Every rank has the part of rank 0. Rank r takes part r.",
            when=_values(lambda c: [parts_of(c)[0]["result"]] * c.n),
        ),
        Mistake(
            "The tensor is cut along another dimension than dim. Only dim is cut, and it is not"
            " always 1.",
            when=lambda e: e.case.along != 1 and _values(lambda c: c.x.tensor_split(c.n, 1))(e),
        ),
        Mistake(
            "No gradient reaches x: it is used without its history (.detach(), .data,"
            " torch.no_grad()), or backward returns None.",
            when=_without("x"),
        ),
        Mistake(
            "An all_reduce of the part with zeros around it would give the whole gradient, and send"
            " twice as much as the gradient's parts need: gather them.",
            when=_some_forbidden("all_reduce"),
        ),
        _SHAPE_OF_WHOLE_GRADIENT,
        *_COMMON,
    ),
)


# The whole tensor, from its parts. --------------------------------------------------


def shards(draw: Draw) -> Iterator[Case]:
    """Draw a part for every rank; all ranks compute the same loss of the whole."""
    for name, kind, length, dim, passed, gradient in _along(draw):
        yield draw.case(
            name,
            x_shard=_cut(draw, draw.tensor(kind), dim),
            full_length=length,
            dim=passed,
            along=dim,
            cotangent=draw.tensor(kind) if gradient else None,
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


def _joined_padded(c: Case) -> list[torch.Tensor]:
    """Return padded parts put together, with the padding cut off at the very end only."""
    longest = max(part.shape[c.along] for part in c.x_shard)
    padded = []
    for part in c.x_shard:
        shape = list(part.shape)
        shape[c.along] = longest - shape[c.along]
        padded.append(torch.cat([part, part.new_zeros(shape)], c.along))
    whole = torch.cat(padded, c.along)
    return [whole.narrow(c.along, 0, c.full_length)] * c.n


def _rows_first(c: Case) -> list[torch.Tensor]:
    """Return the whole with the dimension that was cut moved to the front."""
    return [torch.cat([part.movedim(c.along, 0) for part in c.x_shard])] * c.n


def _summed_whole(c: Case) -> list[torch.Tensor]:
    """Return what autograd makes of the whole gradient for a part of one position: a sum."""
    return [
        c.cotangent.sum(c.along, keepdim=True).expand(part.shape)
        if part.shape[c.along] == 1
        else c.cotangent[:0]
        for part in c.x_shard
    ]


sequence_unshard = Exercise(
    signature="sequence_unshard(x_shard: Tensor, full_length: int, dim: int = 1) -> Tensor",
    summary="the whole of which each rank has a part along dim; backward takes the part",
    inputs=shards,
    adapter=joined_in_rank,
    values=Values(whole_of),
    traffic=TrafficRules(least=moved, allowed=frozenset({"all_gather"})),
    mistakes=(
        Mistake(
            "There is padding inside the result. Cut the padding off each part before you put them"
            " together, not off the end.",
            when=_values(_joined_padded),
        ),
        Mistake(
            "There is padding in the result: it has more than full_length positions. Cut every"
            " part to its own length, as tensor_split makes them.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_SHAPE
                and e.actual[0]["result"].shape[e.case.along] > e.case.full_length
            ),
        ),
        Mistake(
            "Dimension dim has been moved to the front, where the parts are put together, and has"
            " stayed there: move it back.",
            when=lambda e: (
                e.calls("movedim", "transpose", "moveaxis", "permute", "swapaxes")
                and _values(_rows_first)(e)
            ),
        ),
        Mistake(
            "torch.cat puts together along dimension 0 if no other is given: the parts belong side"
            " by side along dim.",
            when=lambda e: e.case.along != 0 and e.says("match except in dimension 0"),
        ),
        Mistake(
            "No gradient comes back: all_gather fills buffers that autograd knows nothing about."
            " Put"
            " the rank's own part, which has a gradient, into its place among what was gathered;"
            " or write a torch.autograd.Function whose backward takes the rank's part of the"
            " gradient.",
            when=_without("x_shard"),
        ),
        Mistake(
            "The gradient is n times too large, as if it were added up over ranks. Every rank"
            " computes the same loss of the same whole, so each has the whole gradient already:"
            " backward takes its own part out of it, and sends nothing.",
            when=_gradient(
                "x_shard",
                lambda c: [entry["gradient of x_shard"] * float(c.n) for entry in whole_of(c)],
            ),
        ),
        Mistake(
            "Every rank takes rank 0's part of the gradient. Rank r's part of x lies at part r of"
            " the whole, and so does its gradient.",
            when=_gradient("x_shard", lambda c: [whole_of(c)[0]["gradient of x_shard"]] * c.n),
        ),
        Mistake(
            "backward returns the gradient of the whole, and autograd has added it up to fit the"
            " shape of x_shard. Only the rank's own part of it belongs to x_shard.",
            when=_gradient("x_shard", _summed_whole),
        ),
        Mistake(
            "Adding up in backward is wrong here: each rank has the whole gradient already.",
            when=lambda e: (
                _some_forbidden("all_reduce")(e)
                and _backward(e.case)
                and any(not _backward(one.case) for one in e.passed)
            ),
        ),
        Mistake(
            "An all_reduce of the part with zeros around it would give the whole, and send twice as"
            " much as the parts need: gather them.",
            when=lambda e: _some_forbidden("all_reduce")(e) and not _backward(e.case),
        ),
        *_COMMON,
    ),
)
