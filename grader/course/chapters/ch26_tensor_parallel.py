"""Chapter 26: tensor parallelism: an MLP, a loss, and a product that begins before all has come.

The oracles work on the whole tensors, in one process and in float64.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional as F

from grader.core.values import dtype_name
from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw, Kind, PerRank, nbytes
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.course.limits import (
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
from grader.rank.instrumentation import UNSEEN, differentiated, noticing_unseen
from grader.trace.trace import Trace

#: The reports of all ranks: the result, and the gradients that are asked for.
Report = list[dict[str, Any]]

_FLOAT, _DOUBLE, _BRAIN = torch.float32, torch.float64, torch.bfloat16

#: Text of the mark between forward and backward.
BETWEEN = "forward has ended"


def _cut(draw: Draw, whole: torch.Tensor, dim: int) -> PerRank:
    return PerRank(part.contiguous() for part in whole.tensor_split(draw.n, dim))


def both_ways(
    answer: Callable[..., Any], arguments: list[Any], leaves: dict[str, int], cotangent: Any
) -> dict[str, Any]:
    """Call the answer, mark the end of forward, and differentiate it by its leaves.

    All-reduces of tensors with a history are marked, too.
    """
    group: Any = dist.group.WORLD

    def forward(*given: Any) -> Any:
        result = answer(*given)
        group.mark(BETWEEN)
        return result

    with noticing_unseen():
        if not leaves:
            return {"result": forward(*arguments)}
        return differentiated(forward, arguments, leaves, cotangent.clone())


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
    return [
        {key: None if value is None else value.to(dtype) for key, value in entry.items()}
        for entry in report
    ]


# What an answer shows. --------------------------------------------------------------


def _partly_empty(c: Case) -> bool:
    """Return whether some ranks have an empty shard, and others do not."""
    shards = c.columns["w_in_shard"] if "w_in_shard" in c.columns else c.columns["logits_shard"]
    empty = [not shard.shape[1] for shard in shards]
    return any(empty) and not all(empty)


def _uneven(c: Case) -> bool:
    """Return whether the shards of the ranks differ in width."""
    shards = c.columns["w_in_shard"] if "w_in_shard" in c.columns else c.columns["logits_shard"]
    return len({shard.shape[1] for shard in shards}) > 1


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
    when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and _only(e, _partly_empty),
)

_LEFT_OUT_BACKWARD = Mistake(
    "Forward works. In backward some rank leaves out a call that the others make: there, too, all"
    " ranks make the same calls in the same order.",
    when=lambda e: e.diagnosis is Diagnosis.DEADLOCK and _only(e, _backward),
)

_NUMBER_OF_GRADIENTS = Mistake(
    "backward returns one gradient for each argument of forward, in that order, and None for those"
    " that are not tensors: count both.",
    when=lambda e: e.says("incorrect number of gradients"),
)

_UNWRITTEN = Mistake(
    "Without a backward of its own a torch.autograd.Function has no gradient: write backward(ctx,"
    " grad), which returns a gradient, or None, for each argument of forward.",
    when=lambda e: e.says("backward is not written yet"),
)

_HOOK = Mistake(
    "The input does not always require a gradient, and then it cannot take a hook: look at"
    " requires_grad first, or use a torch.autograd.Function.",
    when=lambda e: e.says("cannot register a hook"),
)

_COMMON = (
    _LEFT_OUT_EMPTY, _LEFT_OUT_BACKWARD, *evidence.NOT_IN_ONE_PIECE, _NUMBER_OF_GRADIENTS,
    _UNWRITTEN, _HOOK,
)  # fmt: skip

_DEADLOCK = (
    "Every rank makes the same calls in the same order, in backward as well. Which one does some"
    " rank leave out?"
)

_TIMEOUT = (
    "Does the loop at that line ever end? Or does it call the functional collectives of torch?"
    " Those load torch's compiler first, which takes longer than a call may take: use"
    " dist.all_reduce in a torch.autograd.Function."
)


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


def _total(parts: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.stack(parts).sum(0)] * len(parts)


def _mean(parts: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.stack(parts).mean(0)] * len(parts)


def _own(parts: list[torch.Tensor]) -> list[torch.Tensor]:
    return parts


def _times_n(parts: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.stack(parts).sum(0) * len(parts)] * len(parts)


def _nothing(parts: list[torch.Tensor]) -> list[None]:
    return [None] * len(parts)


@dataclass(frozen=True)
class _Way:
    """A way to compute the MLP and its gradients, right or wrong.

    Attributes:
        activation: what stands between the products.
        result: what each rank makes of the ranks' row products.
        upstream: what the gradient of the result is multiplied by before it goes back, by n.
        x: what each rank makes of the ranks' parts of the gradient of x.
        weights: the same for each rank's own gradients of its shards, which are right.
        x_times: what x is multiplied by as it comes in, by n.
    """

    activation: Callable[[torch.Tensor], torch.Tensor] = F.gelu
    result: Callable[[list[torch.Tensor]], Sequence[Any]] = _total
    upstream: Callable[[int], float] = lambda n: 1.0
    x: Callable[[list[torch.Tensor]], Sequence[Any]] = _total
    weights: Callable[[list[torch.Tensor]], Sequence[Any]] = _own
    x_times: Callable[[int], float] = lambda n: 1.0


def mlp_report(c: Case, way: _Way = _Way()) -> Report:
    """Return every rank's result and gradients, in the dtype of its arguments."""
    x = c.x.double() * way.x_times(c.n)
    slope = c.cotangent.double() * way.upstream(c.n)
    found: dict[str, list[torch.Tensor]] = {"y": [], "x": [], "w_in_shard": [], "w_out_shard": []}
    for w_in, w_out in zip(c.w_in_shard, c.w_out_shard, strict=True):
        leaves = [t.double().clone().requires_grad_() for t in (x, w_in, w_out)]
        y = way.activation(leaves[0] @ leaves[1]) @ leaves[2]
        grads = torch.autograd.grad((y * slope).sum(), leaves)
        for key, value in zip(found, (y.detach(), *grads), strict=True):
            found[key].append(value)
    results = way.result(found["y"])
    gradients = {
        "x": way.x(found["x"]),
        "w_in_shard": way.weights(found["w_in_shard"]),
        "w_out_shard": way.weights(found["w_out_shard"]),
    }
    report = [
        {"result": results[r]} | {f"gradient of {name}": gradients[name][r] for name in c.wanted}
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


def _tanh_gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


def _sigmoid_gelu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


def _gives(way: _Way, backward: bool = False) -> Callable[[Case], Report | None]:
    """Make what a mistake gives; one of backward says nothing where no gradient is asked for."""
    return lambda c: mlp_report(c, way) if c.wanted or not backward else mlp_report(c)


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
            "Every rank returns only what its own rows contribute. The result is the sum of these"
            " over ranks: one all-reduce, in forward.",
            gives=(
                _gives(_Way(result=_own)),
                _gives(_Way(result=_own, x=_own)),
                _gives(_Way(result=_own, x=_nothing, weights=_nothing)),
            ),
        ),
        Mistake(
            "The gradient of x is what this rank's own columns contribute. x went into the columns"
            " of all ranks: add up their parts, with an all-reduce in backward.",
            gives=_gives(_Way(x=_own), backward=True),
        ),
        Mistake(
            "The gradients are n times too large. Every rank computes the same loss, so each has"
            " the whole gradient of the sum already: backward of g passes it on as it is. An"
            " all-reduce there adds up n copies of it; that is what"
            " torch.distributed.nn.functional.all_reduce does.",
            gives=(
                _gives(_Way(upstream=float), backward=True),
                _gives(_Way(upstream=float, x=_own), backward=True),
            ),
        ),
        Mistake(
            "The result is divided by n. The rows of the second weight are summed over: their parts"
            " are added up, and not averaged.",
            gives=(_gives(_Way(result=_mean)), _gives(_Way(result=_mean, x=_mean))),
        ),
        Mistake(
            "The gradient of x is divided by n. Every rank contributes another part of it: these"
            " are added up, and not averaged.",
            gives=_gives(_Way(x=_mean), backward=True),
        ),
        Mistake(
            "The gradient of x is n times too large: it is added up over ranks once too often."
            " After one all-reduce it is whole on every rank.",
            gives=_gives(_Way(x=_times_n), backward=True),
        ),
        Mistake(
            "f and g are in each other's places. Before the columns, forward passes x on, and"
            " backward adds up; after the rows it is the other way round.",
            gives=_gives(
                _Way(result=_own, upstream=float, x=_own, x_times=float),
            ),
        ),
        Mistake(
            "No gradient comes back: what was reduced has lost its history (.detach(), .data,"
            " torch.no_grad(), a buffer). Reduce in a torch.autograd.Function whose backward passes"
            " the gradient on as it is.",
            gives=_gives(_Way(x=_nothing, weights=_nothing), backward=True),
        ),
        Mistake(
            "No gradient reaches x: it is used without its history (.detach(), .data,"
            " torch.no_grad()), or backward returns None for it.",
            gives=_gives(_Way(x=_nothing), backward=True),
        ),
        Mistake(
            "This is the tanh approximation of GELU. The exact one is torch.nn.functional.gelu(x),"
            " without approximate.",
            gives=_gives(_Way(_tanh_gelu)),
        ),
        Mistake(
            "This is the approximation x·sigmoid(1.702·x). The exact GELU is"
            " torch.nn.functional.gelu(x).",
            gives=_gives(_Way(_sigmoid_gelu)),
        ),
        Mistake(
            "Between the two products stands a ReLU, and it should be a GELU.",
            gives=_gives(_Way(torch.relu)),
        ),
        Mistake(
            "Between the two products stands a SiLU, and it should be a GELU.",
            gives=_gives(_Way(F.silu)),
        ),
        Mistake(
            "The GELU between the two products is missing.",
            gives=_gives(_Way(lambda h: h)),
        ),
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
                e.diagnosis in (Diagnosis.SIZE_MISMATCH, Diagnosis.WRONG_GRADIENT)
                and _backward(e.case)
                and e.says("all_reduce")
                and _only(e, lambda c: _backward(c) and _uneven(c))
            ),
        ),
        Mistake(
            "More goes out than one all-reduce of the result and one of the gradient of x. No"
            " weights and no columns travel.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_BYTES,
        ),
        *_COMMON,
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
        (_DOUBLE, 5, n - 1, "", True),
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


def _starts(c: Case) -> list[int]:
    """Return where each rank's part of the vocabulary begins."""
    widths = [shard.shape[1] for shard in c.logits_shard]
    return [sum(widths[:r]) for r in c.ranks]


def _loss(c: Case, rank: int, results: Sequence[Any], gradient: Sequence[Any]) -> dict[str, Any]:
    entry = {"result": results[rank]}
    return entry | {f"gradient of {name}": gradient[rank] for name in c.wanted}


def _parts(c: Case, whole: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.split(whole, [shard.shape[1] for shard in c.logits_shard], 1))


def loss_report(c: Case) -> Report:
    """Return the mean loss for every rank, and the gradient of its shard."""
    return _loss_report(c)


def _loss_report(
    c: Case,
    result: Callable[[Case], list[torch.Tensor]] | None = None,
    gradient: Callable[[Case], Sequence[Any]] | None = None,
) -> Report:
    """Return the reports, with another result or gradient on each rank if one is given."""
    logits, rows = _logits(c), len(c.targets)
    hot = F.one_hot(c.targets, logits.shape[1])
    right = (logits.softmax(1) - hot) / rows * c.cotangent.double()
    results = result(c) if result else [F.cross_entropy(logits, c.targets)] * c.n
    gradients = gradient(c) if gradient else _parts(c, right)
    return _rounded([_loss(c, r, results, gradients) for r in c.ranks], c.cotangent.dtype)


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


# What mistakes give.


def _combined_loss(c: Case, tops: Sequence[torch.Tensor], hit: torch.Tensor) -> list[torch.Tensor]:
    """Return every rank's loss if it subtracts its own of ``tops``, by row.

    ``hit`` is what all ranks take for the target's logit, by row.
    """
    sums = [
        (shard.double() - top[:, None]).exp().sum(1)
        for shard, top in zip(c.logits_shard, tops, strict=True)
    ]
    total = torch.stack(sums).sum(0)
    return [(total.log() + top - hit).mean() for top in tops]


def _hits(c: Case, starts: Sequence[int], masked: bool = True) -> torch.Tensor:
    """Return, by row, the sum of what the ranks take for the target's logit.

    A rank takes the logit at the target's place behind its start, if it has one there; unmasked,
    it takes its first or last one otherwise.
    """
    total = torch.zeros(len(c.targets), dtype=_DOUBLE)
    for shard, start in zip(c.logits_shard, starts, strict=True):
        width = shard.shape[1]
        place = c.targets - start
        there = (place >= 0) & (place < width)
        if width:
            taken = shard.double().gather(1, place.clamp(0, width - 1)[:, None])[:, 0]
            total += taken if not masked else torch.where(there, taken, 0.0)
    return total


def _tops(c: Case) -> list[torch.Tensor]:
    return [_logits(c).amax(1)] * c.n


def _own_tops(c: Case) -> list[torch.Tensor]:
    return [shard.double().amax(1) for shard in c.logits_shard]


def _own_hit(c: Case, rank: int) -> torch.Tensor:
    """Return, by row, the target's logit where the rank has it, and 0 elsewhere."""
    nowhere = int(_logits(c).shape[1])
    return _hits(c, [start if r == rank else nowhere for r, start in enumerate(_starts(c))])


def _forward(result: Callable[[Case], list[torch.Tensor]]) -> Callable[[Case], Report | None]:
    """Make what a mistake of the loss gives: where gradients are compared, it predicts nothing."""
    return lambda c: None if c.wanted else _loss_report(c, result)


def _slopes(
    change: Callable[[Case, int, torch.Tensor, torch.Tensor], Any],
) -> Callable[[Case], Report]:
    """Make what a mistake in the gradient gives.

    ``change`` takes the case, the rank, and its parts of the softmax and of the one-hot targets;
    what it returns is multiplied by the gradient that comes back, over the number of rows.
    """

    def gives(c: Case) -> Report:
        logits = _logits(c)
        soft = _parts(c, logits.softmax(1))
        hot = _parts(c, F.one_hot(c.targets, logits.shape[1]).double())

        def gradient(c: Case) -> list[Any]:
            changed = [change(c, r, soft[r], hot[r]) for r in c.ranks]
            factor = c.cotangent.double() / len(c.targets)
            return [None if one is None else one * factor for one in changed]

        return _loss_report(c, gradient=gradient)

    return gives


def _wrong_hot(c: Case, rank: int, soft: torch.Tensor, hot: torch.Tensor) -> torch.Tensor:
    """Return the gradient if a rank without the target counts it at its first or last column."""
    changed = soft.clone()
    if soft.shape[1]:
        place = (c.targets - _starts(c)[rank]).clamp(0, soft.shape[1] - 1)
        changed[torch.arange(len(place)), place] -= 1
    return changed


def _overflows(e: Evidence) -> bool:
    """Return whether just large logits give wrong results, and these are no finite numbers."""
    wrong = [one for one in e.failed if one.diagnosis is Diagnosis.WRONG_VALUE and one.actual]
    return (
        bool(wrong)
        and _only(e, lambda c: bool(c.kind))
        and all(not one.actual[0]["result"].isfinite() for one in wrong)
    )


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
            "The loss is summed over rows. It is their mean.",
            gives=_forward(lambda c: [_loss_report(c)[0]["result"].double() * _rows(c)] * c.n),
        ),
        Mistake(
            "Each rank subtracts the largest of its own logits, and then adds up exponentials of"
            " different scales. All ranks subtract the same number: all-reduce the largest with"
            " MAX first.",
            gives=_forward(lambda c: _combined_loss(c, _own_tops(c), _hits(c, _starts(c)))),
        ),
        Mistake(
            "The largest logit is subtracted in the exponents and not added again to the logarithm:"
            " log Σ exp(l) = m + log Σ exp(l − m).",
            gives=_forward(
                lambda c: [
                    one - top.mean()
                    for one, top in zip(
                        _combined_loss(c, _tops(c), _hits(c, _starts(c))), _tops(c), strict=True
                    )
                ]
            ),
        ),
        Mistake(
            "Targets number the whole vocabulary. A rank looks them up in its own columns, so it"
            " has to subtract the number of its first column.",
            gives=(
                _forward(lambda c: _combined_loss(c, _tops(c), _hits(c, [0] * c.n))),
                _forward(lambda c: _combined_loss(c, _tops(c), _hits(c, [0] * c.n, masked=False))),
            ),
        ),
        Mistake(
            "A rank's first column is not always rank · width: where n does not divide the"
            " vocabulary, the first ranks have one column more. torch.arange(V).tensor_split(n)"
            " says which columns each rank has.",
            gives=(
                _forward(
                    lambda c: _combined_loss(
                        c,
                        _tops(c),
                        _hits(c, [r * c.logits_shard[r].shape[1] for r in c.ranks]),
                    )
                ),
                _forward(
                    lambda c: _combined_loss(
                        c,
                        _tops(c),
                        _hits(c, [r * (_logits(c).shape[1] // c.n) for r in c.ranks]),
                    )
                ),
                _forward(
                    lambda c: _combined_loss(
                        c,
                        _tops(c),
                        _hits(c, [r * -(-_logits(c).shape[1] // c.n) for r in c.ranks]),
                    )
                ),
            ),
        ),
        Mistake(
            "A rank that does not have the target adds another logit in its place. It adds 0: mask"
            " what it looks up.",
            gives=_forward(
                lambda c: _combined_loss(c, _tops(c), _hits(c, _starts(c), masked=False))
            ),
        ),
        Mistake(
            "Every rank has its own loss, of its own columns alone. The sum of the exponentials and"
            " the target's logit have to be added up over ranks.",
            gives=_forward(
                lambda c: [
                    (shard.double().logsumexp(1) - _own_hit(c, r)).mean()
                    for r, shard in enumerate(c.logits_shard)
                ]
            ),
        ),
        Mistake(
            "The gradient is the softmax alone. Where a rank has the target's column, 1 is"
            " subtracted: (softmax − one-hot) / rows.",
            gives=_slopes(lambda c, r, soft, hot: soft),
        ),
        Mistake(
            "In the gradient 1 is subtracted on ranks that do not have the target, too: at the"
            " clamped place, which is another column. Mask it there as in forward.",
            gives=_slopes(_wrong_hot),
        ),
        Mistake(
            "The gradient is not divided by the number of rows. The loss is their mean.",
            gives=_slopes(lambda c, r, soft, hot: (soft - hot) * _rows(c)),
        ),
        Mistake(
            "The gradient is n times too large: a gradient has been added up over ranks. Every rank"
            " computes the same loss, so backward needs no messages.",
            gives=_slopes(lambda c, r, soft, hot: (soft - hot) * c.n),
        ),
        Mistake(
            "Part of the gradient is n times too large: an all-reduce that adds up gradients in"
            " backward, like that of torch.distributed.nn.functional, expects a loss of each rank's"
            " own. Here all ranks have one loss, and backward needs no messages.",
            gives=(
                _slopes(lambda c, r, soft, hot: soft * c.n - hot),
                _slopes(lambda c, r, soft, hot: soft - hot * c.n),
            ),
        ),
        Mistake(
            "backward leaves out the gradient that comes in: multiply by it. The loss may be a part"
            " of a larger sum.",
            gives=_slopes(lambda c, r, soft, hot: (soft - hot) / c.cotangent.double()),
        ),
        Mistake(
            "The sign of the gradient is wrong: it is softmax − one-hot.",
            gives=_slopes(lambda c, r, soft, hot: hot - soft),
        ),
        Mistake(
            "The gradient is that of a softmax over the rank's own columns. Divide by the sum over"
            " all ranks.",
            gives=_slopes(lambda c, r, soft, hot: soft / soft.sum(1, keepdim=True) - hot),
        ),
        Mistake(
            "No gradient comes back: what was reduced has lost its history. Write a"
            " torch.autograd.Function, and return (softmax − one-hot) / rows from its backward.",
            gives=_slopes(lambda c, r, soft, hot: None),
        ),
        Mistake(
            "Large logits overflow: exp(1000) is infinite, and the exponentials of very negative"
            " numbers are all 0, whose logarithm is −inf. Subtract the largest logit of the row"
            " first, of all ranks, and add it again after the logarithm.",
            when=lambda e: _overflows(e) and not e.calls("max", "amax", "logsumexp"),
        ),
        Mistake(
            "Only large or very negative logits go wrong. Is what is subtracted the largest logit"
            " of the row, over all ranks? A rank without columns, or a buffer that begins with 0,"
            " must not take part with 0: the neutral element of a maximum is −inf.",
            when=lambda e: _overflows(e) and e.calls("max", "amax", "logsumexp"),
        ),
        Mistake(
            "amax and max have no result for an empty row, and some ranks have no columns: let them"
            " take part with −inf, for example by appending a column of it.",
            when=lambda e: (
                e.says("Expected reduction dim")
                or e.says("operation does not have an identity")
                or e.says("zero-size")
                or e.says("have non-zero size")
            ),
        ),
        Mistake(
            "A target is looked up in columns that this rank does not have. Clamp the place to the"
            " rank's own columns, and mask what comes out; a rank without columns looks up"
            " nothing.",
            when=lambda e: e.says("out of bounds") or e.says("out of range"),
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
        *_COMMON,
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


def _pieces(c: Case, which: Callable[[int, int], int]) -> list[torch.Tensor]:
    """Return every rank's result if its part j is the product of piece ``which(rank, j)``."""
    return [torch.cat([c.x_shard[which(r, j)] @ c.weight[r] for j in c.ranks]) for r in c.ranks]


def gathered(c: Case) -> list[torch.Tensor]:
    """Return the products of all pieces in rank order, by each rank's own weight."""
    return _pieces(c, lambda r, j: j)


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


def _took(seconds: Callable[[Case], float]) -> Callable[[Evidence], bool]:
    """Make a test for the virtual time in every case that took too long."""

    def when(e: Evidence) -> bool:
        over = [
            (one.case, one.limit.measured)
            for one in e.failed
            if one.limit is not None and one.diagnosis is Diagnosis.TOO_MANY_SECONDS
        ]
        return e.diagnosis is Diagnosis.TOO_MANY_SECONDS and all(
            abs(measured - seconds(case)) < 2e-9 for case, measured in over
        )

    return when


def _one_after_the_other(c: Case) -> float:
    return float(c.n * c.seconds + (c.n - 1) * _piece_travels(c))


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
            "Each rank begins with its own piece, and the products stay in the order in which the"
            " pieces came. They belong in the order of the ranks: after s steps you have the piece"
            " of rank (r − s) mod n, if pieces go to the right.",
            gives=(
                lambda c: _pieces(c, lambda r, j: (r - j) % c.n),
                lambda c: _pieces(c, lambda r, j: (r + j) % c.n),
            ),
        ),
        Mistake(
            "A product stands in the place of another rank's piece. Pieces that go to the right"
            " come from the left: after s steps you have that of rank (r − s) mod n.",
            gives=(
                lambda c: _pieces(c, lambda r, j: (2 * r - j) % c.n),
                lambda c: _pieces(c, lambda r, j: (j + 1) % c.n),
                lambda c: _pieces(c, lambda r, j: (j - 1) % c.n),
            ),
        ),
        Mistake(
            "Every rank passes on its own piece in every step, so its neighbour has no other. Pass"
            " on the piece that came last.",
            gives=lambda c: _pieces(c, lambda r, j: r if j == r else (r - 1) % c.n),
        ),
        Mistake(
            "Every product is that of the rank's own piece. Multiply the piece that is here in each"
            " step.",
            gives=lambda c: _pieces(c, lambda r, j: r),
        ),
        Mistake(
            "Every rank returns the product of its own piece only. All pieces are to be multiplied,"
            " by the multiply of every rank.",
            gives=lambda c: [x @ w for x, w in zip(c.x_shard, c.weight, strict=True)],
        ),
        Mistake(
            "Every rank has multiplied its own piece, and products were passed around. multiply is"
            " another function on each rank, with other columns: pieces have to travel, and not"
            " their products.",
            gives=lambda c: (
                [torch.cat([x @ w for x, w in zip(c.x_shard, c.weight, strict=True)])] * c.n
            ),
        ),
        Mistake(
            "Nothing overlaps: the time is that of all transfers, and then of all products. Post"
            " the messages, multiply the piece that is here, and only then wait for them.",
            when=_took(_one_after_the_other),
        ),
        Mistake(
            "Products and transfers overlap, but there is one transfer too many: after n − 1 steps"
            " every piece has been everywhere, and the last one is multiplied without a message"
            " beside it.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES
                and all(
                    one.limit.measured == one.case.n * one.case.x_shard[0].numel()
                    for one in e.failed
                    if one.limit is not None and "sent by" in one.limit.quantity
                )
            ),
        ),
        Mistake(
            "Some of the time is hidden, but not all that could be. Is the next piece on its way"
            " before you begin to multiply, in every step, the first one too?",
            when=lambda e: e.diagnosis is Diagnosis.TOO_MANY_SECONDS,
        ),
        Mistake(
            "All ranks send before they receive, and a send waits until it is received. Post the"
            " send with dist.isend, and wait for it after the receive.",
            when=lambda e: (
                e.diagnosis is Diagnosis.DEADLOCK
                and e.calls("send")
                and all(
                    op.kind == "send" and op.blocked is not None
                    for ops in e.trace.operations
                    for op in ops[-1:]
                )
            ),
        ),
    ),
)
