"""Chapter 07: many values become one, on every rank."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
import torch.nn.functional as F

from grader.core.verdict import Diagnosis
from grader.course.cases import OPS, Case, Draw, demo, magnitude, op_name, reduced, reductions, tags
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.course.limits import calls, combined, given, messages, point

_Guess = Callable[[Case], Sequence[torch.Tensor] | None]


def _inputs(draw: Draw) -> Iterator[Case]:
    for name, kind in reductions(draw.n):
        yield draw.case(f"{name} of {kind}", x=draw.per_rank(kind, name), op=OPS[name])


def _same(actual: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Return whether two results agree up to rounding, which cancellation can make large."""
    fits = actual.shape == wanted.shape
    return fits and torch.allclose(actual.double(), wanted.double(), rtol=1e-2, atol=1e-5)


def _raised(*words: str) -> Callable[[Evidence], bool]:
    """Make a test of whether a rank raised an error with any of these words."""
    return lambda e: (
        e.diagnosis is Diagnosis.EXCEPTION
        and e.failure is not None
        and any(word in e.failure.message for word in words)
    )


def _instead(wrong: str, *asked: str) -> _Guess:
    """Make a ``gives``: the results if ``wrong`` were computed where one of ``asked`` is."""
    return lambda c: [reduced(OPS[wrong], c.x)] * c.n if op_name(c.op) in asked else None


def _divided(root: Callable[[int], float], others: Callable[[int], float]) -> _Guess:
    """Make the results for AVG if a root divides the sum by one number and others by another."""

    def guess(c: Case) -> list[torch.Tensor] | None:
        if c.n == 1 or op_name(c.op) != "AVG":
            return None
        total = reduced(OPS["SUM"], c.x)
        return [total / (others(c.n) if r else root(c.n)) for r in c.ranks]

    return guess


def _on_most_ranks(symptom: Callable[[Evidence], bool]) -> Callable[[Evidence], bool]:
    """Make a test of whether a symptom shows in the largest world in which a value is wrong.

    On two ranks, the rank that is wrong and the rank that is right may each be the root.
    """

    def seen(e: Evidence) -> bool:
        wrong = [one for one in e.failed if one.diagnosis is Diagnosis.WRONG_VALUE]
        largest = max(wrong, key=lambda one: one.case.n)
        return symptom(Evidence((largest,), e.source))

    return seen


def _only_one_right(e: Evidence) -> bool:
    """Return whether one rank has the result, and the others still have their own x."""
    right = reduced(e.case.op, e.case.x)
    changed = [t for r, t in enumerate(e.actual) if not torch.equal(t, e.case.x[r])]
    return e.case.n > 1 and len(changed) == 1 and _same(changed[0], right)


def _all_but_one_right(e: Evidence) -> bool:
    """Return whether all ranks but one have the result, and that one still has its own x."""
    right = reduced(e.case.op, e.case.x)
    others = [t for r, t in enumerate(e.actual) if not torch.equal(t, e.case.x[r])]
    return len(others) == e.case.n - 1 and all(_same(t, right) for t in others)


def _without(root: int, zeros: bool) -> _Guess:
    """Make a ``gives``: the reductions without one rank's x, or with zeros in its place."""

    def guess(c: Case) -> list[torch.Tensor]:
        gone = root % c.n
        if c.n == 1:
            return list(c.x)
        if zeros:
            return [reduced(c.op, [t * (r != gone) for r, t in enumerate(c.x)])] * c.n
        return [reduced(c.op, [t for r, t in enumerate(c.x) if r != gone])] * c.n

    return guess


def _from_zeros(c: Case) -> list[torch.Tensor]:
    """Return the results if the root begins with zeros instead of its own x, for n = 1 as well."""
    return [reduced(c.op, [torch.zeros_like(c.x[0]), *c.x[1:]])] * c.n


def _partial(c: Case) -> list[torch.Tensor] | None:
    """Return what ranks hold if rank 0 answers each as soon as it has added that rank's x."""
    if op_name(c.op) == "AVG":
        return None
    return [reduced(c.op, c.x[: r + 1] if r else c.x) for r in c.ranks]


def _divided_each_time(by: Callable[[int], int]) -> _Guess:
    """Return the result for AVG if rank 0 divides after each addition."""

    def guess(c: Case) -> list[torch.Tensor] | None:
        if op_name(c.op) != "AVG":
            return None
        total = c.x[0]
        for term in c.x[1:]:
            total = (total + term) / by(c.n)
        return [total] * c.n

    return guess


def _pieces(c: Case, piece: Callable[[int, torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return a tensor put together from n pieces of the reduction, each changed by ``piece``."""
    parts = reduced(c.op, c.x).flatten().tensor_split(c.n)
    whole = torch.cat([piece(i, part) for i, part in enumerate(parts)])
    return whole[: c.x[0].numel()].reshape(c.x[0].shape)


def _padded_inside(c: Case) -> list[torch.Tensor] | None:
    """Return pieces padded to the longest, with the padding cut off at the very end only."""
    longest = -(-c.x[0].numel() // c.n)
    return [_pieces(c, lambda _, part: F.pad(part, (0, longest - len(part))))] * c.n


def _own_piece_only(e: Evidence) -> bool:
    """Return whether every rank has some of the result, and none more than one piece of it."""
    c = e.case
    right, longest = reduced(c.op, c.x).flatten(), -(-c.x[0].numel() // c.n)
    if e.diagnosis is not Diagnosis.WRONG_VALUE or c.n == 1:
        return False
    changed = [(t != c.x[r]).flatten() for r, t in enumerate(e.actual)]
    return any(mask.any() for mask in changed) and all(
        int(mask.sum()) <= longest and _same(t.flatten()[mask], right[mask])
        for mask, t in zip(changed, e.actual, strict=True)
    )


def _tail_as_it_was(c: Case) -> list[torch.Tensor]:
    """Return the results if the elements that n does not divide are left unreduced."""
    kept = c.x[0].numel() // c.n * c.n
    whole = reduced(c.op, c.x).flatten()
    tails = [t.flatten()[kept:] for t in c.x]
    return [torch.cat([whole[:kept], tail]).reshape(c.x[0].shape) for tail in tails]


def _pieces_as_they_were(c: Case, padded: bool = False) -> list[torch.Tensor] | None:
    """Return the results if piece i is rank i's own, unreduced, perhaps divided for AVG."""
    if op_name(c.op) == "AVG":
        return None
    if not padded:
        return [_pieces(c, lambda i, _: c.x[i].flatten().tensor_split(c.n)[i])] * c.n
    longest = max(1, -(-c.x[0].numel() // c.n))
    own = [t.flatten()[i * longest : (i + 1) * longest] for i, t in enumerate(c.x)]
    return [torch.cat(own).reshape(c.x[0].shape)] * c.n


def _flat_ones_right(c: Case) -> list[torch.Tensor]:
    """Return the results of a program that takes flatten() for a copy: it is none in 1-D."""
    return [reduced(c.op, c.x)] * c.n if c.x[0].dim() == 1 else list(c.x)


def _too_few_pieces(e: Evidence) -> bool:
    """Return whether chunk or split gave a list that is shorter than the group."""
    found = re.search(
        r"has (\d+) tensors; a group of (\d+)", e.failure.message if e.failure else ""
    )
    short = int(found[1]) < int(found[2]) if found else _raised("index out of range")(e)
    return short and e.written(r"\b(chunk|split)\(")


_MIN_MAX = (
    Mistake("MIN and MAX are swapped.", gives=_instead("MAX", "MIN")),
    Mistake("MIN and MAX are swapped.", gives=_instead("MIN", "MAX")),
)
_DIVIDED_TWICE = Mistake(
    "The sum is divided by n twice. An average needs one division, in one place.",
    gives=_divided(lambda n: n**2, lambda n: n**2),
)
_ALWAYS_DIVIDES = Mistake(
    "Only AVG divides; SUM, MIN, MAX and PRODUCT do not. Integers cannot be divided in place.",
    when=_raised("can't be cast"),
)
_RETURNS = "all_reduce works in place: put the result into x itself, with x.copy_(...), and return"

all_reduce_rooted = Exercise(
    signature="all_reduce_rooted(x: Tensor, op: dist.ReduceOp) -> None",
    summary="in place; reduce to one rank, then broadcast from it",
    inputs=_inputs,
    values=Values(
        lambda c: [reduced(c.op, c.x)] * c.n,
        result="x",
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
    ),
    traffic=TrafficRules(limits=(messages("=", lambda c: 2 * (c.n - 1)),), least=combined),
    demo=lambda n: demo(n, x=tags(n, 2), op=OPS["SUM"]),
    mistakes=(
        *evidence.BUFFER_RACES,
        Mistake(
            "AVG is the sum divided by the number of ranks; the division is missing.",
            gives=_instead("SUM", "AVG"),
        ),
        Mistake(
            "AVG is the sum divided by the number of ranks, the root included. Here it is divided"
            " by n − 1.",
            gives=_divided(lambda n: n - 1, lambda n: n - 1),
        ),
        Mistake(
            "Whatever op says, you sum: compare op with dist.ReduceOp.MIN and the others.",
            gives=_instead("SUM", "MIN", "MAX", "PRODUCT"),
        ),
        *_MIN_MAX,
        _DIVIDED_TWICE,
        Mistake(
            "The other ranks divide once more, although the root sends them the average: the"
            " division belongs to the root alone.",
            gives=_divided(lambda n: n, lambda n: n**2),
        ),
        Mistake(
            "The root divides after it has sent the result. Finish the result first, then"
            " broadcast it.",
            gives=_divided(lambda n: n, lambda n: 1),
        ),
        Mistake(
            "The result reaches every rank, but it is received into another tensor and stays"
            " there. Receive it into x itself.",
            when=_on_most_ranks(
                lambda e: _only_one_right(e) and e.trace.traffic.messages == 2 * (e.case.n - 1)
            ),
        ),
        Mistake(
            "Every rank but the root ends with the result. The root has sent it, but its own x is"
            " as it was. Combine into x itself (`x = x + buffer` makes a new tensor, `x += buffer`"
            " does not), or write the result back at the end, with x.copy_(...).",
            when=_on_most_ranks(_all_but_one_right),
        ),
        Mistake(
            "One rank has the result, and the others have what they began with. The second half is"
            " missing, which is the broadcast.",
            when=_on_most_ranks(
                lambda e: _only_one_right(e) and e.trace.traffic.messages < 2 * (e.case.n - 1)
            ),
        ),
        Mistake(
            "One x is missing from the result, and it is the root's own: start from x, not from"
            " zeros, and combine into it.",
            gives=(
                _from_zeros,
                *(_without(root, zeros) for root in (0, -1) for zeros in (True, False)),
            ),
        ),
        Mistake(
            "The root answers each rank before it has heard from all of them, so the first ones get"
            " a partial result. Receive from all ranks first, and then broadcast.",
            gives=_partial,
        ),
        Mistake(
            "The division happens once per message, so early terms are divided again and again:"
            " add everything up first, divide once.",
            gives=(_divided_each_time(lambda n: n), _divided_each_time(lambda n: 2)),
        ),
        _ALWAYS_DIVIDES,
        evidence.AVERAGE_ALONE,
        Mistake(
            "x is as it was on every rank. `x = x + buffer` makes a new tensor that the caller"
            " never sees; `x += buffer` writes into x.",
            gives=lambda c: list(c.x),
            when=lambda e: evidence.rebinds(e, "x"),
        ),
        Mistake(
            "x is as it was on every rank. Is what comes combined into x itself, or is the result"
            " left in another tensor?",
            gives=lambda c: list(c.x),
            when=lambda e: not evidence.rebinds(e, "x"),
        ),
    ),
)


def _share(c: Case) -> int:
    """Return the elements of the largest share of x, cut by elements or by rows."""
    x: torch.Tensor = c.x[0]
    if x.dim() == 0 or not x.numel():
        return 1
    row = x.numel() // len(x)
    return max(-(-x.numel() // c.n), -(-len(x) // c.n) * row)


all_reduce_sharded = Exercise(
    signature="all_reduce_sharded(x: Tensor, op: dist.ReduceOp) -> None",
    summary="in place; a reduce-scatter, then an all-gather, for any length",
    inputs=_inputs,
    values=Values(
        lambda c: [reduced(c.op, c.x)] * c.n,
        result="x",
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
    ),
    traffic=TrafficRules(
        # to gather everything and reduce it on every rank is to share no work, and a
        # reduce-scatter beside it changes nothing
        limits=(
            point(
                calls({"reduce_scatter", "send"}, "≥", lambda c: c.n * (1 < c.n <= c.x[0].numel()))
            ),
            point(given("all_gather", "≤", _share)),
        ),
        least=combined,
        allowed=frozenset({"reduce_scatter", "all_gather"}),
    ),
    mistakes=(
        Mistake(
            "You get the sum where op says something else. Does op reach the reduce-scatter?"
            " Without op=… it sums. And if you take SUM for AVG, divide once by the world size.",
            gives=(
                _instead("SUM", "AVG", "MIN", "MAX", "PRODUCT"),
                _instead("SUM", "AVG"),
                _instead("SUM", "MIN", "MAX", "PRODUCT"),
            ),
        ),
        *_MIN_MAX,
        _DIVIDED_TWICE,
        Mistake(
            "Every rank has its own piece of the result in x, and no other. The second half is"
            " missing, which is the all-gather.",
            when=_own_piece_only,
        ),
        Mistake(
            "The pieces are put together, but nothing has been reduced: piece i is what rank i"
            " began with.",
            gives=(_pieces_as_they_were, partial(_pieces_as_they_were, padded=True)),
        ),
        Mistake(
            "The last elements are left out: x.numel() // n rounds down. Round up and pad, or split"
            " unevenly with tensor_split.",
            gives=_tail_as_it_was,
        ),
        Mistake(
            "There is padding inside the result. If each piece has padding of its own, cut it off"
            " each piece before you put them together.",
            gives=_padded_inside,
        ),
        Mistake(
            "gloo's all_gather takes pieces of one size only. Where n does not divide the length,"
            " pad the pieces to the length of the longest, and cut the padding off afterwards.",
            when=_raised("needs tensors of one size"),
        ),
        Mistake(
            "n does not divide this length. Pad x up to a multiple of n, or split it unevenly with"
            " tensor_split.",
            when=_raised(
                "is invalid for input of size",
                "do not divide evenly",
                "split_with_sizes",
            ),
        ),
        Mistake(
            "There are fewer pieces than ranks. chunk(n) and split make at most n, and for many"
            " lengths fewer: 9 elements for 4 ranks give 3. tensor_split(n) always gives n.",
            when=_too_few_pieces,
        ),
        Mistake(
            "This gloo does not know AVG: take SUM, and divide by n.",
            when=lambda e: _raised("AVG", "ReduceOp")(e) and op_name(e.case.op) == "AVG",
        ),
        _ALWAYS_DIVIDES,
        evidence.AVERAGE_ALONE,
        Mistake(
            "Buffers for pieces and padding need x's dtype: x.new_zeros(size) keeps it.",
            when=_raised("of one dtype", "tensor type", "scalar type"),
        ),
        Mistake(
            "Two sizes do not fit together. Which sizes do the pieces have? Try a length that n"
            " does not divide, one below n, and an x with two dimensions.",
            when=_raised("size", "shape", "expand"),
        ),
        Mistake(
            "A matrix stays as it was, and only a vector is reduced: what you reduced was a copy of"
            " the matrix. Write the result back, as in x.copy_(result).",
            gives=_flat_ones_right,
            when=lambda e: any(one.case.x[0].dim() == 1 for one in e.passed if one.case.n > 1),
        ),
        Mistake(
            "x is as it was on every rank. Is the result in a copy? flatten() and reshape may copy,"
            " padding always does, and `x = …` only gives the name x to another tensor. Write the"
            " result back, as in x.copy_(result).",
            gives=lambda c: list(c.x),
        ),
    ),
)
