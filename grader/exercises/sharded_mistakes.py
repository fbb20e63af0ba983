"""Mistakes of chapter 17, recognised by the gradients and the values that they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch

from grader.cases import Case
from grader.exercise import Evidence, Mistake
from grader.exercises.sharded import (
    column_gradients,
    parts_of,
    product,
    row_gradients,
    whole_of,
)
from grader.verdict import Diagnosis

__all__ = ["COLUMN", "ROW", "SHARD", "UNSHARD"]

Test = Callable[[Evidence], bool]


def _gradient(name: str, wrong: Callable[[Case], Sequence[torch.Tensor]]) -> Test:
    """Whether every rank has this gradient, and it is not the right one."""

    def when(e: Evidence) -> bool:
        found = [report[f"gradient of {name}"] for report in e.actual]
        return e.diagnosis is Diagnosis.WRONG_GRADIENT and _alike(found, wrong(e.case))

    return when


def _values(wrong: Callable[[Case], Sequence[torch.Tensor]]) -> Test:
    """Whether every rank has this result."""

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
    """Whether no rank has this gradient."""
    missing = f"gradient of {name}"
    return lambda e: (
        e.diagnosis is Diagnosis.WRONG_GRADIENT
        and not any(report[missing] is not None for report in e.actual)
    )


def _raised(*words: str) -> Test:
    return lambda e: any(map(e.says, words))


def _times_n(
    gradients: Callable[[Case], dict[str, list[torch.Tensor]]], name: str, power: int = 1
) -> Test:
    return _gradient(name, lambda c: [g * float(c.n) ** power for g in gradients(c)[name]])


def _some_forbidden(*kinds: str) -> Test:
    # whole names: an all_reduce is no reduce
    told = re.compile(rf"\b({'|'.join(kinds)}) is a collective")
    return lambda e: (
        e.diagnosis is Diagnosis.FORBIDDEN_CALL
        and bool(e.failure and told.search(e.failure.message))
    )


_LIBRARY = Mistake(
    "Is this torch.distributed.nn.functional, or one of its relatives? Their backward adds up the"
    " gradients of all ranks, because they expect that every rank has a loss of its own, and for"
    " that they call this collective. Here every rank computes the same loss: each has the whole"
    " gradient already, and only has to take its part. Write backward yourself, in a"
    " torch.autograd.Function.",
    when=_some_forbidden("scatter", "reduce_scatter", "all_to_all", "reduce"),
)
_SIZES = Mistake(
    "gloo's all_gather takes pieces of one size only, and here n does not divide the length. Pad"
    " every piece to the longest, which is -(-length // n), and cut the padding off when it has"
    " come.",
    when=lambda e: (
        _raised("needs tensors of one size")(e)
        or (e.diagnosis is Diagnosis.SIZE_MISMATCH and e.says("all_gather"))
    ),
)
_FEWER = Mistake(
    "There are fewer pieces than ranks: chunk(n) and split make at most n, and fewer for many"
    " lengths (9 in 4 give 3). tensor_split(n) always gives n, some of them empty.",
    when=_raised("out of range", "tensors; a group of"),
)
_CONTIGUOUS = Mistake(
    "A message needs a tensor whose numbers lie in one piece, and those of a slice, a transpose and"
    " many gradients do not: call .contiguous() first.",
    when=_raised("contiguous"),
)
_SHAPE_OF_GRADIENT = Mistake(
    "backward returns one gradient for each argument of forward, of that argument's shape: cut to"
    " the rank's own part, without padding.",
    when=_raised("invalid gradient", "incorrect number of gradients"),
)
_EMPTY = Mistake(
    "Some rank may have nothing: with fewer columns, rows or positions than ranks its shard is"
    " empty, and reshape(-1, 0) cannot tell how long the other side is. flatten(0, -2) can.",
    when=_raised("cannot reshape tensor of 0 elements", "unspecified dimension size -1"),
)
_HOOK = Mistake(
    "x does not always require a gradient (the first layer's input never does), and then it takes"
    " no hook: look at x.requires_grad first, or use a torch.autograd.Function.",
    when=_raised("cannot register a hook"),
)
_IN_PLACE = Mistake(
    "The arguments belong to the caller, who differentiates by them: they may not be written into."
    " Make new tensors.",
    when=_raised("in-place operation", "inplace operation"),
)
_BUFFERS = Mistake(
    "Buffers need the dtype of what goes into them: x.new_zeros(shape) and torch.empty_like(x)"
    " have it, torch.zeros(shape) alone makes float32.",
    when=_raised("dtype", "scalar type", "tensor type"),
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
    _LIBRARY, _SIZES, _FEWER, _CONTIGUOUS, _SHAPE_OF_GRADIENT, _EMPTY, _HOOK, _IN_PLACE, _BUFFERS,
    _UNWRITTEN, _DIM,
)  # fmt: skip


def _padded_inside(c: Case) -> list[torch.Tensor]:
    """Every rank's columns, padded, and the padding taken off at the end alone."""
    longest = -(-sum(w.shape[1] for w in c.weight_shard) // c.n)
    parts = [c.x.double() @ w.double() for w in c.weight_shard]
    padded = [torch.nn.functional.pad(p, (0, longest - p.shape[-1])) for p in parts]
    return [torch.cat(padded, -1)[..., : c.cotangent.shape[-1]]] * c.n


COLUMN = (
    Mistake(
        "Every rank has its own columns of the product, and nobody else's: gather them, and put"
        " them side by side along the last dimension.",
        when=_values(lambda c: [c.x.double() @ w.double() for w in c.weight_shard]),
    ),
    Mistake(
        "There is padding inside the result. Cut the padding off each piece before you put them"
        " together, not off the end.",
        when=lambda e: e.case.n > 1 and _values(_padded_inside)(e),
    ),
    Mistake(
        "No gradient comes back at all: all_gather fills buffers that autograd knows nothing of."
        " Put the rank's own columns, which have a gradient, into their place among what was"
        " gathered; or write a torch.autograd.Function whose backward takes the rank's columns of"
        " the gradient.",
        when=_without("weight_shard"),
    ),
    Mistake(
        "No gradient reaches x: it is used without its history (.detach(), .data, torch.no_grad()),"
        " or backward returns None for it.",
        when=_without("x"),
    ),
    Mistake(
        "The gradient of x is what this rank's own columns bring to it, G_r W_rᵀ. The whole weight"
        " has other columns, too: add up everybody's part, with an all_reduce in backward.",
        when=_gradient("x", lambda c: column_gradients(c)["part of x"]),
    ),
    Mistake(
        "The gradient of x is divided by n. Every rank brings another part of it, so they are"
        " added up, and not averaged.",
        when=_times_n(column_gradients, "x", -1),
    ),
    Mistake(
        "A gradient is n times too large: the gradient of the gathered product was added up over"
        " ranks. Every rank computes the same loss, so each has the whole of that gradient"
        " already: in backward take its own columns out of it, and send nothing.",
        when=lambda e: (
            _times_n(column_gradients, "weight_shard")(e) or _times_n(column_gradients, "x")(e)
        ),
    ),
    *_COMMON,
)

ROW = (
    Mistake(
        "Every rank has what its own part of the inner dimension brings, and the product is the"
        " sum of all: all_reduce it.",
        when=_values(
            lambda c: [
                x.double() @ w.double() for x, w in zip(c.x_shard, c.weight_shard, strict=True)
            ]
        ),
    ),
    Mistake(
        "The product is divided by n. The inner dimension is summed over: the parts are added up,"
        " and not averaged.",
        when=_values(lambda c: [product(c) / c.n] * c.n),
    ),
    Mistake(
        "The gradients are n times too large. The same loss stands on every rank, so the gradient"
        " of the sum is whole on each of them, and it is the gradient of every term: backward"
        " passes it on as it is. An all_reduce in backward adds up n copies of it; that is what"
        " torch.distributed.nn.functional.all_reduce does.",
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
        when=lambda e: any(_without(name)(e) for name in e.case.wanted),
    ),
    *_COMMON,
)


def _zeros_around(c: Case) -> list[torch.Tensor]:
    """What autograd makes of a slice: the rank's own part of the gradient, and zeros."""
    grads = []
    for r in c.ranks:
        parts = [part if i == r else part * 0 for i, part in enumerate(c.cotangent)]
        grads.append(torch.cat(parts, c.along))
    return grads


def _shard_scaled(by: float) -> Test:
    return _gradient("x", lambda c: [entry["gradient of x"] * by for entry in parts_of(c)])


SHARD = (
    Mistake(
        "The gradient of x holds this rank's part, and zeros. x went into the losses of all ranks,"
        " each through another part: gather those parts in backward, in a"
        " torch.autograd.Function.",
        when=_gradient("x", _zeros_around),
    ),
    Mistake(
        "The gradient of x is scaled by the number of ranks. Each part of it comes from one rank"
        " alone: put them side by side; nothing is added up or averaged.",
        when=lambda e: _shard_scaled(e.case.n)(e) or _shard_scaled(1 / e.case.n)(e),
    ),
    Mistake(
        "Every rank has the part of rank 0. Rank r takes part r.",
        when=_values(lambda c: [parts_of(c)[0]["result"]] * c.n),
    ),
    Mistake(
        "The tensor is cut along another dimension than dim. Only dim is cut, and it is not always"
        " 1.",
        when=lambda e: e.case.along != 1 and _values(lambda c: c.x.tensor_split(c.n, 1))(e),
    ),
    Mistake(
        "No gradient reaches x: it is used without its history (.detach(), .data, torch.no_grad()),"
        " or backward returns None.",
        when=_without("x"),
    ),
    Mistake(
        "An all_reduce of the part with zeros around it would give the whole gradient, and send"
        " twice as much as the gradient's parts need: gather them.",
        when=_some_forbidden("all_reduce"),
    ),
    *_COMMON,
)


def _joined_padded(c: Case) -> list[torch.Tensor]:
    """Padded parts put together, and the padding taken off at the end alone."""
    longest = max(part.shape[c.along] for part in c.x_shard)
    padded = []
    for part in c.x_shard:
        shape = list(part.shape)
        shape[c.along] = longest - shape[c.along]
        padded.append(torch.cat([part, part.new_zeros(shape)], c.along))
    whole = torch.cat(padded, c.along)
    return [whole.narrow(c.along, 0, c.full_length)] * c.n


def _rows_first(c: Case) -> list[torch.Tensor]:
    """The dimension that is put together comes first, and stays there."""
    return [torch.cat([part.movedim(c.along, 0) for part in c.x_shard])] * c.n


UNSHARD = (
    Mistake(
        "There is padding inside the result. Cut the padding off each part before you put them"
        " together, not off the end.",
        when=_values(_joined_padded),
    ),
    Mistake(
        "There is padding in the result: it has more than full_length positions. Cut every part to"
        " its own length, as tensor_split makes them.",
        when=lambda e: (
            e.diagnosis is Diagnosis.WRONG_SHAPE
            and e.actual[0]["result"].shape[e.case.along] > e.case.full_length
        ),
    ),
    Mistake(
        "The parts are put together along another dimension than dim, or that dimension is left"
        " where it was not.",
        when=_values(_rows_first),
    ),
    Mistake(
        "No gradient comes back: all_gather fills buffers that autograd knows nothing of. Put the"
        " rank's own part, which has a gradient, into its place among what was gathered; or write"
        " a torch.autograd.Function whose backward takes the rank's part of the gradient.",
        when=_without("x_shard"),
    ),
    Mistake(
        "The gradient is n times too large: it was added up over ranks. Every rank computes the"
        " same loss of the same whole, so each has the whole gradient already: backward takes its"
        " own part out of it, and sends nothing.",
        when=_gradient(
            "x_shard",
            lambda c: [entry["gradient of x_shard"] * float(c.n) for entry in whole_of(c)],
        ),
    ),
    Mistake(
        "Every rank takes rank 0's part of the gradient. Rank r's part of x lies at part r of the"
        " whole, and so does its gradient.",
        when=_gradient("x_shard", lambda c: [whole_of(c)[0]["gradient of x_shard"]] * c.n),
    ),
    Mistake(
        "Adding up in backward is one too many: each rank has the whole gradient already.",
        when=_some_forbidden("all_reduce"),
    ),
    *_COMMON,
)
