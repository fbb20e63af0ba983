"""Chapter 26: tensor parallelism: an MLP, a loss, and a product that begins before all has come.

The oracles work on the whole tensors, in one process and in float64.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional as F

from grader.course.chapters import evidence
from grader.exercise.cases import Case, Draw, Kind, PerRank, nbytes
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import (
    after,
    before,
    calls,
    carried,
    combined,
    neighbours_only,
    point,
    sent_elements,
    virtual_seconds,
)
from grader.instruments import (
    BETWEEN,
    UNSEEN,
    differentiate,
    mark_end,
    mark_unseen_collectives,
)
from headcount.core.values import dtype_name
from headcount.core.verdict import Diagnosis
from headcount.trace.trace import Trace

#: The reports of all ranks: the result, and the gradients that are asked for.
Report = list[dict[str, Any]]

_FLOAT, _DOUBLE, _BRAIN = torch.float32, torch.float64, torch.bfloat16


def _cut(draw: Draw, whole: torch.Tensor, dim: int) -> PerRank:
    return PerRank(part.contiguous() for part in whole.tensor_split(draw.n, dim))


def both_ways(
    answer: Callable[..., Any], arguments: list[Any], leaves: dict[str, int], cotangent: Any
) -> dict[str, Any]:
    """Call the answer, mark the end of forward, and differentiate it by its leaves.

    All-reduces of tensors with a history are marked, too.
    """
    forward = mark_end(answer)
    # simulated ranks have one group together, which cannot be watched for each of them
    own = hasattr(dist.group.WORLD, "pause")
    with mark_unseen_collectives() if own else contextlib.nullcontext():
        if not leaves:
            return {"result": forward(*arguments)}
        return differentiate(forward, arguments, leaves, cotangent.clone())


def unseen(c: Case, trace: Trace) -> str:
    """Return a remark on gradients that are right only because autograd misses a sum."""
    if not any(mark.text == UNSEEN for marks in trace.marks for mark in marks):
        return ""
    return (
        "The gradients are right, but by luck: dist.all_reduce wrote into a tensor that has a"
        " history, and autograd did not see it. A torch.autograd.Function with a backward of its"
        " own says what is meant, and does not depend on what comes before and after."
    )


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a matrix, with all dimensions but the last made one."""
    return tensor.double().flatten(0, -2)


def _rounded(report: Report, dtype: torch.dtype) -> Report:
    return [{key: value.to(dtype) for key, value in entry.items()} for entry in report]


# What an answer shows. --------------------------------------------------------------


def _shards(c: Case) -> list[torch.Tensor]:
    """Return the parts of the ranks that are cut by columns."""
    return list(c.columns["w_in_shard" if "w_in_shard" in c.columns else "logits_shard"])


def _partly_empty(c: Case) -> bool:
    """Return whether some ranks have an empty shard, and others do not."""
    empty = [not shard.shape[1] for shard in _shards(c)]
    return any(empty) and not all(empty)


def _uneven(c: Case) -> bool:
    """Return whether the shards of the ranks differ in width."""
    return len({shard.shape[1] for shard in _shards(c)}) > 1


def _only(e: Evidence, concerned: Callable[[Case], bool]) -> bool:
    """Return whether just the cases fail that are concerned, and others of several ranks pass."""
    others = [one for one in e.passed if one.case.n > 1 and not concerned(one.case)]
    return bool(others) and all(concerned(one.case) for one in e.failed)


def _backward(c: Case) -> bool:
    return bool(c.columns["wanted"])


def _missed(e: Evidence, *words: str) -> bool:
    """Return whether the first limit that is missed has one of these in its quantity."""
    limit = e.here.limit
    return limit is not None and any(word in limit.quantity for word in words)


_LEFT_OUT_EMPTY = Mistake(
    "Everything works until a rank has an empty shard: that rank leaves out a call that the others"
    " make. It has to take part all the same, with zeros for what it does not have.",
    # where the shards of all ranks are empty, nobody waits
    when=lambda e: (
        e.diagnosis is Diagnosis.DEADLOCK
        and _only(e, lambda c: not all(shard.shape[1] for shard in _shards(c)))
        and all(_partly_empty(one.case) for one in e.failed if one.diagnosis is e.diagnosis)
    ),
)

_LEFT_OUT_BACKWARD = Mistake(
    "Forward works. In backward some rank leaves out a call that the others make: there, too, all"
    " ranks make the same calls in the same order.",
    when=lambda e: (
        e.diagnosis is Diagnosis.DEADLOCK and _only(e, _backward) and evidence.forward_has_ended(e)
    ),
)

_LEFT_OUT = (_LEFT_OUT_EMPTY, _LEFT_OUT_BACKWARD)


# An MLP. ----------------------------------------------------------------------------


def mlps(draw: Draw) -> Iterator[Case]:
    """Draw an x that is the same on every rank, and two weights, cut by columns and by rows."""
    n = draw.n
    every, weights = ("x", "w_in_shard", "w_out_shard"), ("w_in_shard", "w_out_shard")
    for dtype, front, width, inner, out, wanted in (
        (_FLOAT, (3,), 4, 7, 4, ()),
        (_DOUBLE, (3,), 4, n, 4, every),
        (_FLOAT, (2, 3), 5, n + 1, 5, every),
        (_DOUBLE, (4,), 3, n - 1, 6, every),
        (_FLOAT, (2,), 3, 1, 3, weights),
        (_DOUBLE, (2, 2), 3, 1000, 2, every),
        (_BRAIN, (3,), 2, 2 * n, 2, every),
        (_DOUBLE, (5,), 6, 7, 3, ("x",)),
        (_FLOAT, (3,), 2, 0, 2, every),
    ):
        gradients = f"gradient of {' and '.join(wanted)}" if wanted else "forward only"
        if len(wanted) == len(every):
            gradients = "all gradients"
        x = Kind(dtype, (*front, width))
        yield draw.case(
            f"x of {x}, inner width {inner}, outer {out}; {gradients}",
            x=draw.tensor(x),
            w_in_shard=_cut(draw, draw.tensor(Kind(dtype, (width, inner))), 1),
            w_out_shard=_cut(draw, draw.tensor(Kind(dtype, (inner, out))), 0),
            cotangent=draw.tensor(Kind(dtype, (*front, out))),
            wanted=list(wanted),
        )


def mlp_in_rank(
    answer: Callable[..., Any],
    x: Any,
    w_in_shard: Any,
    w_out_shard: Any,
    cotangent: Any,
    wanted: list[str],
) -> dict[str, Any]:
    """Call ``parallel_mlp``, and go backward from a gradient."""
    places = {"x": 0, "w_in_shard": 1, "w_out_shard": 2}
    leaves = {name: places[name] for name in wanted}
    return both_ways(answer, [x, w_in_shard, w_out_shard], leaves, cotangent)


def mlp_report(c: Case) -> Report:
    """Return every rank's result and gradients, in the dtype of its arguments.

    The result and the gradient of x are sums of what the ranks' shards contribute.
    """
    found: dict[str, list[torch.Tensor]] = {
        "result": [],
        "x": [],
        "w_in_shard": [],
        "w_out_shard": [],
    }
    for w_in, w_out in zip(c.w_in_shard, c.w_out_shard, strict=True):
        leaves = [t.double().clone().requires_grad_() for t in (c.x, w_in, w_out)]
        y = F.gelu(leaves[0] @ leaves[1]) @ leaves[2]
        gradients = torch.autograd.grad((y * c.cotangent.double()).sum(), leaves)
        for key, value in zip(found, (y.detach(), *gradients), strict=True):
            found[key].append(value)
    for key in ("result", "x"):
        found[key] = [torch.stack(found[key]).sum(0)] * c.n
    report = [
        {"result": found["result"][r]}
        | {f"gradient of {name}": found[name][r] for name in c.wanted}
        for r in c.ranks
    ]
    return _rounded(report, c.cotangent.dtype)


def mlp_terms(c: Case) -> int:
    """Return a bound on the roundings behind each number: of both products, and of the ranks."""
    inner = sum(shard.shape[1] for shard in c.w_in_shard)
    rows = c.x[..., :1].numel()
    return int(c.x.shape[-1] + inner + c.cotangent.shape[-1] + rows) + c.n + 8


def mlp_magnitude(c: Case) -> list[dict[str, torch.Tensor]]:
    """Return what errors are relative to: the sizes of all terms that were added up.

    GELU's slope is at most 1.13 and changes by at most 0.8 for each unit, and GELU is no larger
    than its argument; so an error before it grows by little, and is a share of the terms there.
    """
    x, slope = _flat(c.x).abs(), _flat(c.cotangent).abs()
    found: list[dict[str, torch.Tensor]] = []
    for w_in, w_out in zip(c.w_in_shard, c.w_out_shard, strict=True):
        a, b = w_in.double().abs(), w_out.double().abs()
        h = x @ a
        dh = (slope @ b.T) * (1.13 + 0.8 * h)
        found.append(
            {
                "result": 1.13 * h @ b,
                "gradient of x": dh @ a.T,
                "gradient of w_in_shard": x.T @ dh,
                "gradient of w_out_shard": 1.13 * h.T @ slope,
            }
        )
    for key in ("result", "gradient of x"):
        whole = torch.stack([entry[key] for entry in found]).sum(0)
        shape = (c.cotangent if key == "result" else c.x).shape
        found = [entry | {key: whole.reshape(shape)} for entry in found]
    asked = ["result", *(f"gradient of {name}" for name in c.wanted)]
    return [{key: entry[key] for key in asked} for entry in found]


def least_of_mlp(c: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that all ranks must receive: one row of the sum, if others add to it.

    It is one row only, since a rank that is sent the others' weights can compute all rows.
    """
    inner = sum(shard.shape[1] for shard in c.w_in_shard)
    return combined(
        c,
        [
            _flat(expected[r]["result"])[0].to(c.cotangent.dtype)
            if shard.shape[1] < inner
            else None
            for r, shard in enumerate(c.w_in_shard)
        ],
    )


def _most_sent_by_mlp(c: Case) -> int:
    """Return what one all-reduce of the result and one of the gradient of x send."""
    back = c.x.numel() if c.wanted else 0
    return 2 * (c.n - 1) * sum(-(-count // c.n) for count in (c.cotangent.numel(), back))


def _one_call(where: str) -> Callable[[Evidence], bool]:
    return lambda e: e.diagnosis is Diagnosis.TOO_MANY_MESSAGES and _missed(e, where)


parallel_mlp = Exercise(
    signature="parallel_mlp(x: Tensor, w_in_shard: Tensor, w_out_shard: Tensor) -> Tensor",
    summary="a GELU between two products whose weights are shared out, by columns and by rows",
    inputs=mlps,
    adapter=mlp_in_rank,
    traffic=TrafficRules(
        limits=(
            # on one rank there is nothing to say of calls that add up nothing
            replace(
                point(before(calls({"all_reduce"}, "≤", lambda c: c.n), BETWEEN, "in forward")),
                applies=lambda c: c.n > 1,
            ),
            replace(
                point(after(calls({"all_reduce"}, "≤", lambda c: c.n), BETWEEN, "in backward")),
                applies=lambda c: c.n > 1 and _backward(c),
            ),
            point(sent_elements("≤", _most_sent_by_mlp)),
        ),
        least=least_of_mlp,
        remark=unseen,
        allowed=frozenset({"all_reduce"}),
    ),
    values=Values(mlp_report, reduced=mlp_terms, magnitude=mlp_magnitude),
    mistakes=(
        Mistake(
            "There is more than one all-reduce in forward. After the columns nothing has to be"
            " added up or put together: GELU takes each number alone, and these columns are just"
            " what the rank's own rows take.",
            when=_one_call("in forward"),
        ),
        Mistake(
            "There is more than one all-reduce in backward. Each rank's gradients of its own shards"
            " are whole already, and so is the gradient of the result; only that of x has to be"
            " added up.",
            when=_one_call("in backward"),
        ),
        Mistake(
            "The gradients of the shards are added up over ranks. Each rank has shards of its own,"
            " and their gradients belong to no other rank.",
            when=lambda e: (
                e.diagnosis is Diagnosis.SIZE_MISMATCH
                and _only(e, lambda c: _backward(c) and _uneven(c))
            ),
        ),
        Mistake(
            "More goes out than one all-reduce of the result and one of the gradient of x. No"
            " weights and no columns travel.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES,
        ),
        *_LEFT_OUT,
    ),
)


# A loss. ----------------------------------------------------------------------------

#: How logits are drawn: a factor, and what is added.
_LOGITS = {
    "": (1.0, 0.0),
    "large logits": (1000.0, 2000.0),
    "very negative logits": (10.0, -4000.0),
}


def losses(draw: Draw) -> Iterator[Case]:
    """Draw logits, cut by columns, and targets, the same on every rank."""
    n = draw.n
    for dtype, rows, vocabulary, kind, gradient in (
        (_FLOAT, 3, 7, "", False),
        (_DOUBLE, 4, 2 * n, "", True),
        (_FLOAT, 6, n + 1, "", True),
        (_DOUBLE, 5, n - 1, "very negative logits", True),
        (_DOUBLE, 2, n, "", True),
        (_FLOAT, 3, 1, "", True),
        (_FLOAT, 5, 3 * n + 1, "large logits", True),
        (_DOUBLE, 3, n + 1, "very negative logits", True),
        (_BRAIN, 3, n, "", True),
        (_FLOAT, 1, 1000, "", True),
    ):
        if not vocabulary:
            continue
        factor, shift = _LOGITS[kind]
        logits = draw.tensor(Kind(_DOUBLE, (rows, vocabulary))) * factor + shift
        numbers = draw.tensor(Kind(torch.int64, (2, rows)))
        targets = (100 * numbers[0] + numbers[1]) % vocabulary
        if rows > 1:
            # whatever is drawn, one is far from the first rank's columns, and wrong starts show
            targets[0] = vocabulary - 1
        what = f"{dtype_name(dtype)}, {kind}" if kind else dtype_name(dtype)
        yield draw.case(
            f"{rows} row{'s' * (rows > 1)}, a vocabulary of {vocabulary}, {what};"
            f" {'with the gradient' if gradient else 'forward only'}",
            logits_shard=_cut(draw, logits.to(dtype), 1),
            targets=targets,
            cotangent=draw.tensor(Kind(dtype, ())),
            wanted=["logits_shard"] if gradient else [],
            kind=kind,
        )


def loss_in_rank(
    answer: Callable[..., Any],
    logits_shard: Any,
    targets: Any,
    cotangent: Any,
    wanted: list[str],
    kind: str,
) -> dict[str, Any]:
    """Call ``vocab_parallel_cross_entropy``, and go backward from a gradient."""
    return both_ways(answer, [logits_shard, targets], dict.fromkeys(wanted, 0), cotangent)


def _logits(c: Case) -> torch.Tensor:
    return torch.cat(list(c.logits_shard), 1).double()


def _loss(c: Case, rank: int, results: Sequence[Any], gradient: Sequence[Any]) -> dict[str, Any]:
    entry = {"result": results[rank]}
    return entry | {f"gradient of {name}": gradient[rank] for name in c.wanted}


def _parts(c: Case, whole: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.split(whole, [shard.shape[1] for shard in c.logits_shard], 1))


def loss_report(c: Case) -> Report:
    """Return the mean loss for every rank, and the gradient of its shard.

    The derivative of a row's loss is softmax − one-hot.
    """
    logits, rows = _logits(c), len(c.targets)
    hot = F.one_hot(c.targets, logits.shape[1])
    slope = _parts(c, (logits.softmax(1) - hot) / rows * c.cotangent.double())
    whole = [F.cross_entropy(logits, c.targets)] * c.n
    return _rounded([_loss(c, r, whole, slope) for r in c.ranks], c.cotangent.dtype)


def loss_terms(c: Case) -> int:
    """Return a bound on the roundings behind each number."""
    return int(_logits(c).shape[1] + len(c.targets)) + c.n + 12


def loss_magnitude(c: Case) -> list[dict[str, torch.Tensor]]:
    """Return what errors are relative to.

    A loss is a difference of logits, of which the larger may be rounded first; a probability is
    off by a share of itself that grows with the logits that were subtracted in its exponent.
    One that is smaller than any normal number may be rounded to 0, or not.
    """
    logits, rows = _logits(c), len(c.targets)
    limits = torch.finfo(c.cotangent.dtype)
    size = logits.abs().amax(1, keepdim=True) + 2
    hot = F.one_hot(c.targets, logits.shape[1])
    slope = (logits.softmax(1) * (1 + 2 * size) + hot) / rows * c.cotangent.double().abs()
    slope += limits.tiny / limits.eps
    whole = (3 * size).mean()
    return [_loss(c, r, [whole] * c.n, _parts(c, slope)) for r in c.ranks]


def least_of_loss(c: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that all ranks must receive.

    A rank knows the gradient of its shard only if it knows the sum of the exponentials of each
    row, to which others add.  Where logits are far apart, their sum is easy to guess.
    """
    if not c.wanted or c.kind:
        return 0
    width = _logits(c).shape[1]
    sums = _logits(c).logsumexp(1).to(c.cotangent.dtype)
    return combined(c, [sums if 0 < s.shape[1] < width else None for s in c.logits_shard])


def _overflow(kinds: set[str]) -> Callable[[Evidence], bool]:
    """Make a test of whether just these kinds of logits give results that are not finite."""

    def when(e: Evidence) -> bool:
        wrong = [one for one in e.failed if one.diagnosis is Diagnosis.WRONG_VALUE and one.actual]
        right = {one.case.kind for one in e.passed if one.limit is None}
        return (
            {one.case.kind for one in wrong} == kinds
            and right >= _LOGITS.keys() - kinds
            and _only(e, lambda c: c.kind in kinds)
            and all(not one.actual[0]["result"].isfinite() for one in wrong)
        )

    return when


def _carries(
    least: Callable[[Case], float], most: Callable[[Case], float]
) -> Callable[[Evidence], bool]:
    """Make a test for the largest call: it carries so many elements wherever it is too large."""

    def when(e: Evidence) -> bool:
        over = [
            one
            for one in e.failed
            if one.limit is not None and one.diagnosis is Diagnosis.TOO_MANY_BYTES
        ]
        return (
            e.diagnosis is Diagnosis.TOO_MANY_BYTES
            and _missed(e, "in a call")
            and all(
                least(one.case) <= one.limit.measured <= most(one.case)
                for one in over
                if one.limit is not None and "in a call" in one.limit.quantity
            )
        )

    return when


def _rows(c: Case) -> int:
    return len(c.targets)


vocab_parallel_cross_entropy = Exercise(
    signature="vocab_parallel_cross_entropy(logits_shard: Tensor, targets: Tensor) -> Tensor",
    summary="the mean cross-entropy of logits whose vocabulary is shared out",
    inputs=losses,
    adapter=loss_in_rank,
    traffic=TrafficRules(
        limits=(
            point(carried("≤", _rows)),
            # three numbers a row are needed; a fourth is granted, and one for the vocabulary's size
            sent_elements("≤", lambda c: 2 * (c.n - 1) * -(-(4 * _rows(c) + 1) // c.n)),
        ),
        least=least_of_loss,
        remark=unseen,
        allowed=frozenset({"all_reduce"}),
    ),
    values=Values(loss_report, reduced=loss_terms, magnitude=loss_magnitude),
    mistakes=(
        Mistake(
            "Large logits overflow: exp(1000) is infinite, and the exponentials of very negative"
            " numbers are all 0, whose logarithm is −inf. Subtract the largest logit of the row"
            " first, of all ranks, and add it again after the logarithm.",
            when=_overflow({"large logits", "very negative logits"}),
        ),
        Mistake(
            "Only very negative logits go wrong. Is what is subtracted the largest logit of the"
            " row, over all ranks? A rank without columns, or a buffer that begins with a number"
            " such as 0, must not take part with that: the neutral element of a maximum is −inf.",
            when=_overflow({"very negative logits"}),
        ),
        Mistake(
            "Only large logits go wrong, which lie far apart. Is what is subtracted the largest"
            " logit of the row, over all ranks? Or is the target's logit taken from its"
            " exponential, which may be 0?",
            when=_overflow({"large logits"}),
        ),
        Mistake(
            "Two numbers a row go out in one call. That is fewer calls, but this exercise asks for"
            " one number a row at a time: reduce them one after the other.",
            when=_carries(lambda c: 2 * _rows(c), lambda c: 2 * _rows(c)),
        ),
        Mistake(
            "A call carries the widths of all ranks. One number does: the size of the vocabulary,"
            " which is the sum of the widths. tensor_split says the rest.",
            when=lambda e: (
                _carries(lambda c: c.n, lambda c: c.n)(e)
                and all(one.case.n > _rows(one.case) for one in e.failed)
            ),
        ),
        Mistake(
            "Logits travel: a call carries as much as a shard of them, or more. For each row, one"
            " number is enough for the maximum, one for the sum, and one for the target's logit.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and _missed(e, "in a call"),
        ),
        Mistake(
            "No call carries too much, but there are too many of them. For each row, one number is"
            " enough for the maximum, one for the sum, and one for the target's logit; backward can"
            " keep what it needs of them.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES and _missed(e, "sent by"),
        ),
        *_LEFT_OUT,
    ),
)


# A product that begins before all has come. -----------------------------------------

#: α and β of the simulated network, in seconds and seconds per byte.
_NETWORK = (1e-6, 1e-9)


def _travel(size: int) -> float:
    """Return the seconds that a message of ``size`` bytes takes on the simulated network."""
    alpha, beta = _NETWORK
    return alpha + size * beta


def gathers(draw: Draw) -> Iterator[Case]:
    """Draw each rank's rows and its own weight; some cases have a network, and products take time.

    There the product of one piece takes a share of the time in which the piece travels.
    """
    n = draw.n
    for dtype, rows, inner, out, share in (
        (torch.int64, 2, 2, 1, 0.0),
        (_DOUBLE, 7, 3, 4, 0.0),
        (_FLOAT, 1, 4, 2, 0.0),
        (_FLOAT, n + 1, 3, 3, 0.0),
        (_BRAIN, n, 4, 2, 0.0),
        (torch.int64, n - 1, 5, 3, 0.0),
        (_DOUBLE, 1000, 2, 2, 0.0),
        (_FLOAT, 0, 3, 2, 0.0),
        (_DOUBLE, 8, 16, 3, 0.5),
        (_FLOAT, 10, 30, 2, 2.0),
    ):
        x, weight = Kind(dtype, (rows, inner)), Kind(dtype, (inner, out))
        travels = _travel(rows * inner * dtype.itemsize)
        took = f"; a product takes {share:g} of a piece's journey" if share else ""
        case = draw.case(
            f"pieces of {x}, times {weight}{took}",
            x_shard=draw.per_rank(x),
            weight=PerRank(draw.factors(weight) for _ in draw.ranks),
            seconds=share * travels,
        )
        yield replace(case, network=_NETWORK) if share else case


def gather_in_rank(
    answer: Callable[..., Any], x_shard: Any, weight: Any, seconds: float
) -> torch.Tensor:
    """Call ``gather_matmul`` with a product by the rank's own weight.

    ``seconds`` is how long the product of one piece takes, in virtual time.
    """

    def multiply(piece: Any) -> Any:
        if seconds:
            time.sleep(seconds * piece.numel() / x_shard.numel())
        if piece.is_cuda and not piece.is_floating_point():
            # a GPU has no product of matrices of integers
            return (piece.unsqueeze(-1) * weight).sum(-2)
        return piece @ weight

    result: torch.Tensor = answer(x_shard, multiply)
    return result


def gathered(c: Case) -> list[torch.Tensor]:
    """Return the products of all pieces in rank order, by each rank's own weight."""
    whole = torch.cat(list(c.x_shard))
    return [whole @ weight for weight in c.weight]


def _gathered_sizes(c: Case) -> list[torch.Tensor]:
    whole = torch.cat(list(c.x_shard)).double().abs()
    return [whole @ weight.double().abs() for weight in c.weight]


def least_of_gathered(c: Case, expected: Sequence[Any]) -> int:
    """Return the bytes that all ranks must receive.

    One number of each foreign row counts, since a row may have fewer numbers than its product.
    """
    rows = len(c.x_shard[0])
    others = [
        torch.cat([part[:, 0] for j, part in enumerate(expected[r].split(rows)) if j != r])
        if rows and c.n > 1
        else None
        for r in c.ranks
    ]
    return combined(c, others)


def _piece_travels(c: Case) -> float:
    return _travel(nbytes(c.x_shard[0]))


def overlapped_seconds(c: Case) -> float:
    """Return the longer of all products and all transfers, and one product."""
    return float(max(c.n * c.seconds, (c.n - 1) * _piece_travels(c)) + c.seconds)


gather_matmul = Exercise(
    signature="gather_matmul(x_shard: Tensor, multiply: Callable[[Tensor], Tensor]) -> Tensor",
    summary="the products of all ranks' pieces, each multiplied while the next one travels",
    inputs=gathers,
    adapter=gather_in_rank,
    values=Values(gathered, reduced=lambda c: c.x_shard[0].shape[1], magnitude=_gathered_sizes),
    traffic=TrafficRules(
        limits=(
            neighbours_only(),
            sent_elements("≤", lambda c: (c.n - 1) * c.x_shard[0].numel()),
            point(virtual_seconds("≤", overlapped_seconds)),
        ),
        least=least_of_gathered,
    ),
    mistakes=(
        Mistake(
            "All ranks send before they receive, and a send waits until it is received. Post the"
            " send with dist.isend, and wait for it after the receive.",
            when=evidence.all_send,
        ),
    ),
)
