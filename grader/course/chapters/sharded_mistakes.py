"""Mistakes of chapter 17, recognised by the gradients and the values that they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case
from grader.course.chapters.sharded import (
    column_gradients,
    parts_of,
    product,
    row_gradients,
    whole_of,
)
from grader.course.exercise import Evidence, Mistake

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
    """Whether no rank has this gradient, which is asked for."""
    missing = f"gradient of {name}"
    return lambda e: (
        e.diagnosis is Diagnosis.WRONG_GRADIENT
        and not any(report[missing] is not None for report in e.actual)
    )


def _without_any(e: Evidence) -> bool:
    """Whether no gradient that is asked for has come back on any rank."""
    asked = [key for key in e.actual[0] if key.startswith("gradient of ")]
    return bool(asked) and all(_without(key.removeprefix("gradient of "))(e) for key in asked)


def _shards(c: Case) -> list[torch.Tensor]:
    """What differs by rank: the part of the tensor or of the matrix that is cut."""
    if "weight_shard" in c.columns:
        return list(c.weight_shard)
    return list(c.x_shard) if "x_shard" in c.columns else list(c.x.tensor_split(c.n, c.along))


def _uneven(e: Evidence) -> bool:
    """Whether the parts of the ranks differ in size."""
    return len({part.shape for part in _shards(e.case)}) > 1


def _only_empty(e: Evidence) -> bool:
    """Whether it goes wrong only where a rank has an empty part and others have not."""

    def partly(c: Case) -> bool:
        empty = [not part.numel() for part in _shards(c)]
        return any(empty) and not all(empty)

    full = [one for one in e.passed if one.case.n > 1 and not partly(one.case)]
    return bool(full) and all(partly(one.case) for one in e.failed)


def _backward(c: Case) -> bool:
    """Whether a gradient is asked for."""
    return bool(c.columns["wanted"]) if "wanted" in c.columns else c.cotangent is not None


def _only_backward(e: Evidence) -> bool:
    """Whether forward alone goes well on several ranks, and with backward it does not."""
    forward = [one for one in e.judged if one.case.n > 1 and not _backward(one.case)]
    return bool(forward) and all(one.passed for one in forward) and _backward(e.case)


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
_CONTIGUOUS = Mistake(
    "A message needs a tensor whose numbers lie in one piece, and those of a slice, a transpose and"
    " many gradients do not: call .contiguous() first.",
    when=_raised("contiguous tensor", "must be contiguous", ".contiguous()"),
)
_VIEW = Mistake(
    "view needs numbers that lie in one piece, and those of a slice, a transpose and many gradients"
    " do not: reshape and flatten make a copy where they have to.",
    when=_raised("view size is not compatible"),
)
_NUMBER_OF_GRADIENTS = Mistake(
    "backward returns one gradient for each argument of forward, in that order, and None for those"
    " that are no tensors: count both.",
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
    "All goes well until a rank has an empty shard: there one leaves out a call that the others"
    " are in. It takes part all the same, with nothing in its hands.",
    when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and _only_empty(e),
)
_LEFT_OUT_BACKWARD = Mistake(
    "Forward alone goes well: it is in backward that some rank leaves out a call that others are"
    " in, or makes one more. There, too, all ranks make the same calls in the same order.",
    when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and not _only_empty(e) and _only_backward(e),
)
_EMPTY = Mistake(
    "Some rank may have nothing: with fewer columns, rows or positions than ranks its shard is"
    " empty, and reshape(-1, 0) cannot tell how long the other side is. flatten(0, -2) can.",
    when=_raised("cannot reshape tensor of 0 elements", "unspecified dimension size -1"),
)
_HOOK = Mistake(
    "The input does not always require a gradient (that of the first layer never does), and then"
    " it takes no hook: look at requires_grad first, or use a torch.autograd.Function.",
    when=_raised("cannot register a hook"),
)
_IN_PLACE = Mistake(
    "The arguments belong to the caller and are differentiated by: they may not be written into."
    " Make new tensors.",
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
    _LIBRARY, _SIZES, _FEWER, _CONTIGUOUS, _VIEW, _NUMBER_OF_GRADIENTS, _SHAPE_OF_GRADIENT, _EMPTY,
    _MATRICES, _HOOK, _IN_PLACE, _BUFFERS, _CONVERTED, _DEFAULT, _UNWRITTEN, _DIM,
    _LEFT_OUT_EMPTY, _LEFT_OUT_BACKWARD,
)  # fmt: skip


def _padded_inside(c: Case) -> list[torch.Tensor]:
    """Every rank's columns, padded, and the padding taken off at the end alone."""
    longest = -(-sum(w.shape[1] for w in c.weight_shard) // c.n)
    parts = [c.x.double() @ w.double() for w in c.weight_shard]
    padded = [torch.nn.functional.pad(p, (0, longest - p.shape[-1])) for p in parts]
    return [torch.cat(padded, -1)[..., : c.cotangent.shape[-1]]] * c.n


def _columns_reversed(c: Case) -> list[torch.Tensor]:
    """The columns of the last rank first."""
    parts = [c.x.double() @ w.double() for w in c.weight_shard]
    return [torch.cat(parts[::-1], -1)] * c.n


_times_n_of_weight = _times_n(column_gradients, "weight_shard")
_times_n_of_x = _times_n(column_gradients, "x")


COLUMN = (
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
        "No gradient comes back at all: all_gather fills buffers that autograd knows nothing of."
        " Put the rank's own columns, which have a gradient, into their place among what was"
        " gathered; or write a torch.autograd.Function whose backward takes the rank's columns of"
        " the gradient.",
        when=lambda e: e.calls("all_gather") and _without_any(e),
    ),
    Mistake(
        "No gradient reaches weight_shard: it is used without its history (.detach(), .data,"
        " torch.no_grad()), or backward returns None for it.",
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
        when=_times_n_of_weight,
    ),
    Mistake(
        "The gradient of x is n times too large, as if what all ranks bring to it were added up"
        " once too often. One all_reduce of G_r W_rᵀ is enough.",
        when=lambda e: _times_n_of_x(e) and not _times_n_of_weight(e),
    ),
    *_COMMON,
)


def _flat_rows(c: Case) -> int:
    """How many rows x has if all its dimensions but the last are made one."""
    return int(c.cotangent.flatten(0, -2).shape[0])


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
        "All dimensions but the last stay as they are: x_shard may have three of them, and so has"
        " the result.",
        when=lambda e: (
            e.diagnosis is Diagnosis.WRONG_SHAPE
            and e.case.x_shard[0].dim() > 2
            and e.actual[0]["result"].shape == (_flat_rows(e.case), e.case.cotangent.shape[-1])
        ),
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
    _SHAPE_OF_WHOLE_GRADIENT,
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


def _summed_whole(c: Case) -> list[torch.Tensor]:
    """What autograd makes of the whole gradient where a rank's part has one position: a sum."""
    return [
        c.cotangent.sum(c.along, keepdim=True).expand(part.shape)
        if part.shape[c.along] == 1
        else c.cotangent[:0]
        for part in c.x_shard
    ]


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
        "Dimension dim has been moved to the front, where the parts are put together, and has"
        " stayed there: move it back.",
        when=lambda e: (
            e.calls("movedim", "transpose", "moveaxis", "permute", "swapaxes")
            and _values(_rows_first)(e)
        ),
    ),
    Mistake(
        "torch.cat puts together along dimension 0 if no other is given: the parts belong side by"
        " side along dim.",
        when=lambda e: e.case.along != 0 and e.says("match except in dimension 0"),
    ),
    Mistake(
        "No gradient comes back: all_gather fills buffers that autograd knows nothing of. Put the"
        " rank's own part, which has a gradient, into its place among what was gathered; or write"
        " a torch.autograd.Function whose backward takes the rank's part of the gradient.",
        when=_without("x_shard"),
    ),
    Mistake(
        "The gradient is n times too large, as if it were added up over ranks. Every rank computes"
        " the same loss of the same whole, so each has the whole gradient already: backward takes"
        " its own part out of it, and sends nothing.",
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
        "backward returns the gradient of the whole, and autograd has added it up to fit the shape"
        " of x_shard. Only the rank's own part of it belongs to x_shard.",
        when=_gradient("x_shard", _summed_whole),
    ),
    Mistake(
        "Adding up in backward is one too many: each rank has the whole gradient already.",
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
)
