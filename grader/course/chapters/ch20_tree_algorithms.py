"""Chapter 20: collectives in few rounds, by doubling, halving, pipelines and pairs of trees.

The sources are Thakur, Rabenseifner and Gropp, *Optimization of Collective Communication
Operations in MPICH* (2005), and Sanders, Speck and Träff, *Two-tree algorithms for full
bandwidth broadcast, reduction and scan* (2009).
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from grader.core.values import with_article
from grader.core.verdict import Diagnosis
from grader.course.cases import (
    OPS,
    Case,
    Draw,
    Kind,
    demo,
    kinds,
    magnitude,
    nbytes,
    op_name,
    reduced,
    reductions,
    tags,
)
from grader.course.chapters import evidence
from grader.course.exercise import Evidence, Exercise, Gives, Growth, Mistake, TrafficRules, Values
from grader.course.limits import (
    along_chain,
    combined,
    largest_message,
    messages,
    moved,
    point,
    rounds,
    sent,
    sent_elements,
)

# What both all-reduces share. -------------------------------------------------------


def length(c: Case) -> int:
    """Return how many elements each rank's x has."""
    return int(c.x[0].numel())


def untouched(c: Case, divided: bool = False) -> list[torch.Tensor]:
    """Return x as it was, perhaps divided for AVG."""
    return [x / c.n if divided and op_name(c.op) == "AVG" else x for x in c.x]


def everywhere(c: Case, op: str, *asked: str) -> list[torch.Tensor] | None:
    """Return the results if ``op`` were computed where one of ``asked`` is asked for."""
    return [reduced(OPS[op], c.x)] * c.n if op_name(c.op) in asked else None


def divided_twice(c: Case) -> list[torch.Tensor] | None:
    """Return the results if an average is divided by n twice."""
    return [reduced(c.op, c.x) / c.n] * c.n if op_name(c.op) == "AVG" else None


def raised(e: Evidence, *words: str) -> bool:
    """Return whether a rank's exception has one of these words in its message."""
    if e.diagnosis is not Diagnosis.EXCEPTION or e.failure is None:
        return False
    return any(word in text for word in words for text in (e.failure.message, *e.failure.detail))


def is_power(n: int) -> bool:
    """Return whether n is a power of two."""
    return n & (n - 1) == 0


def floor_log(n: int) -> int:
    """Return ⌊log₂ n⌋."""
    return n.bit_length() - 1


def share(c: Case) -> int:
    """Return ⌈len/n⌉, the elements of the largest of n even shares."""
    return -(-length(c) // c.n)


def _most_elements(c: Case) -> int:
    """Return the most elements that a rank sends in halving and doubling.

    Halving and doubling among p ranks, the largest power of two, takes 2(p − 1) shares of ⌈len/p⌉.
    Where ranks fold, a rank hands over a whole tensor besides, which may be padded: p more.
    """
    p = 1 << floor_log(c.n)
    return (2 * (p - 1) + (0 if is_power(c.n) else p)) * -(-length(c) // p)


def _tensors(draw: Draw) -> Iterator[Case]:
    for name, kind in reductions(draw.n):
        yield draw.case(f"{name} of {kind}", x=draw.per_rank(kind, name), op=OPS[name])


def _on_many_ranks(draw: Draw) -> Case:
    x = draw.per_rank(Kind(torch.int64, (draw.n,)), "SUM")
    return draw.case("SUM of one number a rank", x=x, op=OPS["SUM"])


_MERGE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "SUM": torch.add,
    "AVG": torch.add,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "PRODUCT": torch.mul,
}


def _wide(c: Case) -> list[torch.Tensor]:
    """Return a copy of each rank's x that adds up without rounding."""
    dtype = c.x[0].dtype
    return [x.to(torch.float64 if dtype.is_floating_point else dtype, copy=True) for x in c.x]


def _finished(c: Case, held: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return what ranks hold after the division that AVG asks for."""
    whole = [t / c.n if op_name(c.op) == "AVG" else t for t in held]
    return [t.to(c.x[0].dtype) for t in whole]


def _exchanges(c: Case, partner: Callable[[int, int, int], int]) -> list[torch.Tensor]:
    """Return the results if each rank combines with its partner at the distances 1, 2, 4, …"""
    held, merge = _wide(c), _MERGE[op_name(c.op)]
    for k in range((c.n - 1).bit_length()):
        before = [t.clone() for t in held]
        for r in c.ranks:
            other = partner(r, 1 << k, c.n)
            if 0 <= other < c.n:
                held[r] = merge(before[r], before[other])
    return _finished(c, held)


def _without_partners(c: Case) -> list[torch.Tensor] | None:
    """Return the results if a rank without a partner sits the exchange out, and nobody folds."""
    return _exchanges(c, lambda r, step, n: r ^ step)


def _dissemination(c: Case, sign: int) -> list[torch.Tensor] | None:
    """Return the results if each rank takes from the ranks 1, 2, 4, … to one side of it."""
    return _exchanges(c, lambda r, step, n: (r + sign * step) % n)


def _aside(c: Case) -> tuple[set[int], ...]:
    """Return the ranks that may stand aside: the last ones, or one of each of the first pairs."""
    power = 1 << floor_log(c.n)
    rest = c.n - power
    return (
        set(range(power, c.n)),
        set(range(0, 2 * rest, 2)),
        set(range(1, 2 * rest, 2)),
    )


def _forgotten(c: Case, which: int) -> list[torch.Tensor]:
    """Return the results if the ranks that stood aside are never told the result."""
    whole, aside = reduced(c.op, c.x), _aside(c)[which]
    return [c.x[r] if r in aside else whole for r in c.ranks]


def _uncounted(c: Case, which: int, told: bool) -> list[torch.Tensor] | None:
    """Return the results if the x of the ranks that stand aside is never counted."""
    aside = _aside(c)[which]
    if op_name(c.op) == "AVG":
        return None
    whole = reduced(c.op, [x for r, x in enumerate(c.x) if r not in aside])
    return [whole if told or r not in aside else c.x[r] for r in c.ranks]


def _divided_by_power(c: Case) -> list[torch.Tensor]:
    """Return the results if an average is divided by the power of two below n."""
    whole = reduced(c.op, c.x)
    return [whole * c.n / (1 << floor_log(c.n)) if op_name(c.op) == "AVG" else whole] * c.n


#: Mistakes in the arithmetic, and in what is done with ranks beyond a power of two.
_ARITHMETIC = (
    Mistake(
        "The number of ranks is not a power of two here, so some have no partner in an exchange:"
        " rank ^ step may not exist. Let the ranks beyond the largest power of two first give their"
        " x to another rank, and get the result from it at the end.",
        when=lambda e: evidence.no_rank(e) and evidence.uses_xor(e),
    ),
    Mistake(
        "A rank whose partner does not exist sits the exchange out, and what it should have got is"
        " missing from its result. Before the exchanges, fold the ranks beyond the largest power of"
        " two into others.",
        gives=_without_partners,
    ),
    Mistake(
        "Some x are counted twice. Taking from the ranks at the distances 1, 2, 4, … to one side"
        " meets every rank exactly once only if the number of ranks is a power of two.",
        gives=(partial(_dissemination, sign=-1), partial(_dissemination, sign=1)),
    ),
    Mistake(
        "The ranks that stood aside still have what they began with: send them the result at the"
        " end.",
        gives=tuple(partial(_forgotten, which=which) for which in range(3)),
    ),
    Mistake(
        "The x of the ranks beyond the largest power of two is missing from the result. They have"
        " to give it to another rank before the exchanges begin.",
        gives=tuple(
            partial(_uncounted, which=which, told=told)
            for which in range(3)
            for told in (True, False)
        ),
    ),
    Mistake(
        "x is unchanged, although messages were exchanged. Is the result in another tensor?"
        " `x = x + y` and clone() make new ones; x += y writes into x.",
        gives=(untouched, partial(untouched, divided=True)),
        when=lambda e: e.trace.traffic.messages > 0,
    ),
    Mistake(
        "x is unchanged, and nothing was sent. Does your loop run at all?",
        gives=(untouched, partial(untouched, divided=True)),
    ),
    Mistake(
        "AVG is the sum divided by the number of ranks; the division is missing.",
        gives=lambda c: everywhere(c, "SUM", "AVG"),
    ),
    Mistake(
        "The average is divided by n twice: perhaps once before ranks hand the result on, and once"
        " more by those that get it. Do one of the two.",
        gives=divided_twice,
    ),
    Mistake(
        "The sum is divided by the power of two. All n ranks are in it, the folded ones too, so"
        " divide by n.",
        gives=_divided_by_power,
    ),
    Mistake(
        "You sum, whatever op says: compare op with dist.ReduceOp.MIN and the others.",
        gives=lambda c: everywhere(c, "SUM", "MIN", "MAX", "PRODUCT"),
    ),
    Mistake(
        "MIN and MAX are swapped.",
        gives=lambda c: everywhere(c, "MAX", "MIN") or everywhere(c, "MIN", "MAX"),
    ),
    Mistake(
        "Divide only if op is AVG, which comes with floating-point numbers only.",
        when=lambda e: raised(e, "can't be cast"),
    ),
    Mistake(
        "Both ranks of a pair send, and neither receives: a blocking send waits for its receive."
        " Start with request = dist.isend(...), then recv, then request.wait().",
        when=evidence.all_send,
    ),
    *evidence.BUFFER_RACES,
    evidence.AVERAGE_ALONE,
)


def _exceeds_rounds(e: Evidence) -> bool:
    return e.diagnosis is Diagnosis.TOO_MANY_ROUNDS and e.case.n > 2


def _one_way(e: Evidence) -> bool:
    """Return whether every message goes to the right neighbour, or every one to the left."""
    n = e.case.n
    return len({(op.peer - op.rank) % n for op in e.trace.sends()}) == 1


def _in_turn(e: Evidence, exchanges: int) -> bool:
    """Return whether the messages are those of so many exchanges by each rank, but not at once."""
    return _exceeds_rounds(e) and e.trace.traffic.messages == e.case.n * exchanges


def _whole_rows(e: Evidence) -> bool:
    """Return whether too much is sent in a matrix, and only whole rows of it."""
    x = e.case.x[0]
    counts = {op.count for op in e.trace.sends()}
    return bool(
        e.diagnosis is Diagnosis.TOO_MANY_BYTES
        and x.dim() == 2
        and not any(count % x.shape[1] for count in counts)
        and share(e.case) % x.shape[1]
    )


def _exchanges_whole_tensors(e: Evidence) -> bool:
    """Return whether a rank sends all of x more often than to fold, or to tell one that has."""
    whole = Counter(op.rank for op in e.trace.sends() if op.count == length(e.case) > 1)
    return max(whole.values(), default=0) > (0 if is_power(e.case.n) else 1)


_RING_ROUNDS = Mistake(
    "Every message goes to the same side, so that is a ring. Its number of rounds grows with n."
    " Here a rank exchanges with another partner in each round, at the distances 1, 2, 4, …",
    when=lambda e: _exceeds_rounds(e) and _one_way(e),
)

_TREE_ROUNDS = Mistake(
    "There are 2(n − 1) messages, as in a reduce that is followed by a broadcast. That goes up a"
    " tree and down again. If both ranks of a pair send *and* receive, no way down is needed.",
    when=lambda e: _exceeds_rounds(e) and e.trace.traffic.messages == 2 * (e.case.n - 1),
)

_SHARED_ADVICE = {
    Diagnosis.DEADLOCK: "Go through the lines above: does the rank that is waited for make that"
    " call at all? Both ranks of a pair have to exchange with each other, in the same step.",
    Diagnosis.NONDETERMINISTIC: "Rounding depends on how the sum is put together. If both ranks of"
    " a pair add the same two tensors, they get the same bits; if each rank adds up all parts,"
    " beginning with its own, they do not.",
    Diagnosis.BUFFER_RACE: "While isend is sending a tensor, nothing may be written to it: receive"
    " into a buffer, wait for the send, and combine only then.",
    Diagnosis.UNWAITED_REQUEST: "isend returns a request: call wait() on each before the next step"
    " begins.",
    Diagnosis.UNMATCHED_MESSAGE: "A message is sent that its partner never receives. Both ranks of"
    " a pair have to make the same decision about each step.",
}


# Recursive doubling. ----------------------------------------------------------------


def _doubling_rounds(c: Case) -> int:
    """Return the most rounds: log₂ n, or two more than ⌊log₂ n⌋ where ranks must fold."""
    return floor_log(c.n) + (0 if is_power(c.n) else 2)


recursive_doubling_all_reduce = Exercise(
    signature="recursive_doubling_all_reduce(x: Tensor, op) -> None",
    summary="in place, in log₂ n rounds: SUM, AVG, MIN, MAX or PRODUCT, any number of ranks",
    inputs=_tensors,
    values=Values(
        lambda c: [reduced(c.op, c.x)] * c.n,
        result="x",
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
        same_bits=True,
    ),
    # a power of two shows the rounds, and three ranks what folding is for
    world_sizes=(1, 4, 2, 3, 5, 8),
    traffic=TrafficRules(
        limits=(
            point(rounds("≤", _doubling_rounds)),
            point(rounds("≥", lambda c: floor_log(c.n) if is_power(c.n) and length(c) else 0)),
            # a rank sends one message a round, so this adds nothing where ranks must fold
            sent("≤", lambda c: _doubling_rounds(c) * nbytes(c.x[0])),
            sent("≥", lambda c: floor_log(c.n) * nbytes(c.x[0]) if is_power(c.n) else 0),
        ),
        growth=Growth(_on_many_ranks),
        least=combined,
    ),
    demo=lambda n: demo(n, x=tags(n, 1), op=OPS["SUM"]),
    mistakes=(
        *_ARITHMETIC,
        _RING_ROUNDS,
        _TREE_ROUNDS,
        Mistake(
            "In each exchange one rank of a pair sends first and the other answers: that takes two"
            " rounds. Start both sends at the same time, with isend.",
            when=lambda e: _in_turn(e, floor_log(e.case.n)),
        ),
        Mistake(
            "Every rank sends its x to each of the others: n − 1 messages. What it has combined so"
            " far is worth more than its own x alone: pass that on, and log₂ n messages will do.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.TOO_MANY_ROUNDS, Diagnosis.TOO_MANY_BYTES)
                and e.trace.traffic.messages == e.case.n * (e.case.n - 1)
                and not _one_way(e)
            ),
        ),
    ),
)


# Halving and doubling (Rabenseifner). -----------------------------------------------


def halving(
    c: Case,
    *,
    near: bool,
    floor: bool,
    adds: bool = False,
    gather: bool = True,
    backwards: bool = True,
) -> list[torch.Tensor] | None:
    """Return what Rabenseifner's algorithm gives if it goes wrong in the given ways.

    Args:
        c: a case with ``x`` and ``op``.
        near: whether the first exchange is with the neighbour, and not with the farthest rank.
        floor: whether the first half of an odd number of elements is the smaller one.
        adds: whether the second phase combines as well, instead of replacing.
        gather: whether there is a second phase.
        backwards: whether it takes the exchanges of the first in the opposite order.

    Returns:
        What each rank holds; ``None`` if the case cannot tell.
    """
    n, merge = c.n, _MERGE[op_name(c.op)]
    if n == 1 or not is_power(n) or op_name(c.op) == "AVG":
        return None
    held = [t.flatten() for t in _wide(c)]
    mine = [(0, length(c))] * n
    steps = [1 << k for k in range(floor_log(n))]
    done: list[tuple[int, list[slice]]] = []
    for step in steps if near else steps[::-1]:
        before = [t.clone() for t in held]
        given: list[slice] = []
        for r, (low, high) in enumerate(mine):
            middle = low + (high - low + (not floor)) // 2
            halves = (low, middle), (middle, high)
            mine[r], away = halves[::-1] if r & step else halves
            kept = slice(*mine[r])
            held[r][kept] = merge(before[r][kept], before[r ^ step][kept])
            given.append(slice(*away))
        done.append((step, given))
    way_back = done[::-1] if backwards else done
    for step, given in way_back if gather else ():
        before = [t.clone() for t in held]
        for r, part in enumerate(given):
            came = before[r ^ step][part]
            held[r][part] = merge(before[r][part], came) if adds else came
    return [t.reshape(x.shape).to(x.dtype) for t, x in zip(held, c.x, strict=True)]


def _wrong_halvings(**wrong: Any) -> tuple[Gives, ...]:
    return tuple(
        partial(halving, near=near, floor=floor, **wrong)
        for near in (True, False)
        for floor in (True, False)
    )


def _tails(c: Case, divided: bool = False) -> list[torch.Tensor]:
    """Return the results if the elements that the power of two does not divide stay as they are."""
    power = 1 << floor_log(c.n)
    whole = length(c) // power * power
    total = reduced(c.op, c.x).flatten()
    kept = [x / c.n if divided and op_name(c.op) == "AVG" else x for x in c.x]
    return [torch.cat([total[:whole], x.flatten()[whole:]]).reshape(x.shape) for x in kept]


halving_doubling_all_reduce = Exercise(
    signature="halving_doubling_all_reduce(x: Tensor, op) -> None",
    summary="in place: a reduce-scatter by halving, an all-gather by doubling; any n, any length",
    inputs=_tensors,
    values=Values(
        lambda c: [reduced(c.op, c.x)] * c.n,
        result="x",
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(c.op, c.x)] * c.n,
        same_bits=True,
    ),
    world_sizes=(1, 4, 2, 3, 5, 8),
    traffic=TrafficRules(
        limits=(
            point(rounds("≤", lambda c: 2 * floor_log(c.n) + (0 if is_power(c.n) else 2))),
            point(
                rounds(
                    "≥", lambda c: 2 * floor_log(c.n) if is_power(c.n) and length(c) >= c.n else 0
                )
            ),
            point(sent_elements("≤", _most_elements)),
        ),
        growth=Growth(_on_many_ranks),
        least=combined,
    ),
    demo=lambda n: demo(n, x=tags(n, n), op=OPS["SUM"]),
    mistakes=(
        *_ARITHMETIC,
        Mistake(
            "The second phase combines as well. What comes there is finished: it replaces what is"
            " there.",
            gives=_wrong_halvings(adds=True),
        ),
        Mistake(
            "Only the first phase is there: each rank has the whole sum of one share, and parts"
            " elsewhere. The all-gather takes the same exchanges backwards.",
            gives=_wrong_halvings(gather=False),
        ),
        Mistake(
            "The second phase takes the exchanges in the same order as the first. A share that is"
            " finished must grow: the last exchange comes first, and the largest part last.",
            gives=_wrong_halvings(backwards=False),
        ),
        Mistake(
            "The last elements are not reduced: the length is not divisible by the number of ranks,"
            " and equal shares leave some over. tensor_split(2) leaves none.",
            gives=(_tails, partial(_tails, divided=True)),
        ),
        Mistake(
            "The length is smaller than n here, so some halves are empty. You may send them or"
            " leave them out, but both ends have to do the same: let sender and receiver look at"
            " the size of the same half.",
            when=lambda e: (
                e.diagnosis
                in (Diagnosis.DEADLOCK, Diagnosis.UNMATCHED_MESSAGE, Diagnosis.SIZE_MISMATCH)
                and length(e.case) < e.case.n
            ),
        ),
        Mistake(
            "The two halves of an odd number of elements differ by one. The buffer has to be as"
            " long as the half that you keep, since that is the one that comes.",
            when=lambda e: e.diagnosis is Diagnosis.SIZE_MISMATCH and length(e.case) % 2 == 1,
        ),
        Mistake(
            "Whole tensors are exchanged. After the first exchange a rank needs the sum of one half"
            " only, so send a half, then a quarter, then an eighth.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.TOO_MANY_BYTES, Diagnosis.TOO_FEW_ROUNDS)
                and _exchanges_whole_tensors(e)
            ),
        ),
        Mistake(
            "x has rows and columns here, and your halves are rows: an odd number of rows has no"
            " even halves. Cut elements: x.view(-1).tensor_split(2).",
            when=_whole_rows,
        ),
        _RING_ROUNDS,
        Mistake(
            "In each exchange one rank of a pair sends first and the other answers: that takes two"
            " rounds. Start both sends at the same time, with isend.",
            when=lambda e: _in_turn(e, 2 * floor_log(e.case.n)),
        ),
    ),
)


# The pipelined broadcast. -----------------------------------------------------------


def _pieces(c: Case) -> int:
    """Return the number of pieces that are sent: at most one for each element, at least one."""
    return max(1, min(int(c.pieces), length(c)))


#: Numbers of pieces, for the kinds of :func:`grader.course.cases.kinds` in turn.
_PIECES = (3, 4, 2, 16, 2, 9, 1, 5)


def _streams(draw: Draw) -> Iterator[Case]:
    asked = zip(draw.with_roots(kinds(draw.n)), _PIECES, strict=True)
    for (kind, src), pieces in asked:
        yield draw.case(
            f"{kind} from rank {src} in {pieces} piece{'s' * (pieces > 1)}",
            x=draw.per_rank(kind),
            src=src,
            pieces=pieces,
        )


def _tail_kept(c: Case, count: Callable[[Case], int]) -> list[torch.Tensor]:
    """Return the results if the elements that do not fit into equal parts are not sent."""
    whole = length(c) // count(c) * count(c)
    told = c.x[c.src].flatten()[:whole]
    return [
        x if r == c.src else torch.cat([told, x.flatten()[whole:]]).reshape(x.shape)
        for r, x in enumerate(c.x)
    ]


def _to_the_source(e: Evidence) -> bool:
    """Return whether the source, which has everything, is sent something."""
    return any(op.peer == e.case.src for op in e.trace.sends())


#: Mistakes in a broadcast, whatever road x takes.
_NOT_TOLD = (
    Mistake(
        "Every rank ends with rank 0's x. The source is src, and it is not always rank 0.",
        gives=lambda c: [c.x[0]] * c.n if c.src else None,
    ),
    Mistake(
        "Every rank ends with the x of rank −src, modulo n. The place of a rank after src is"
        " (rank − src) % n, which is 0 for src itself.",
        gives=lambda c: [c.x[-c.src % c.n]] * c.n,
    ),
    Mistake(
        "x is unchanged on every rank, although messages were exchanged. Receive into views of x:"
        " x.view(-1).tensor_split(...) gives some, clone() and cat() make new tensors.",
        gives=lambda c: list(c.x),
        when=lambda e: e.trace.traffic.messages > 0,
    ),
    Mistake(
        "Nothing was sent: x is unchanged on every rank.",
        gives=lambda c: list(c.x),
    ),
)


pipelined_broadcast = Exercise(
    signature="pipelined_broadcast(x: Tensor, src: int, pieces: int) -> None",
    summary="in place, along the chain src, src + 1, … in pieces: n − 2 + pieces rounds",
    inputs=_streams,
    values=Values(lambda c: [c.x[c.src]] * c.n, result="x"),
    # on two ranks nothing is passed on
    world_sizes=(1, 4, 2, 3, 5, 8),
    traffic=TrafficRules(
        limits=(
            along_chain(),
            messages("=", lambda c: (c.n - 1) * _pieces(c)),
            point(rounds("=", lambda c: c.n - 2 + _pieces(c) if c.n > 1 else 0)),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, 4), src=1 % n, pieces=4),
    mistakes=(
        *_NOT_TOLD,
        Mistake(
            "The last elements do not arrive: the length is not divisible by the number of pieces,"
            " and pieces of equal size leave some over. x.view(-1).tensor_split(k) leaves none.",
            gives=lambda c: _tail_kept(c, _pieces),
        ),
        Mistake(
            "The chain has an end: the rank before src passes nothing on. Here it sends to src,"
            " which has everything.",
            when=_to_the_source,
        ),
        Mistake(
            "There are fewer elements than pieces here, and some messages are empty. Send at most"
            " one piece for each element: k = max(1, min(pieces, x.numel())).",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_MESSAGES
                and length(e.case) > 0
                and any(op.count == 0 for op in e.trace.sends())
            ),
        ),
        Mistake(
            "chunk(k) may give fewer than k pieces, and here it did: use tensor_split(k), which"
            " always gives k.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_FEW_MESSAGES and e.written(r"\bchunk\("),
        ),
        Mistake(
            "Here x has no elements, and each link still carries one piece, an empty one: leave no"
            " message out.",
            when=lambda e: e.diagnosis is Diagnosis.TOO_FEW_MESSAGES and length(e.case) == 0,
        ),
        Mistake(
            "Each rank waits until it has all pieces before it sends the first one on, so only one"
            " link of the chain is busy at a time. Pass each piece on as soon as it has come.",
            when=lambda e: (
                _exceeds_rounds(e)
                and e.trace.traffic.rounds == (e.case.n - 1) * _pieces(e.case)
                and _pieces(e.case) > 2
            ),
        ),
        Mistake(
            "A rank receives a piece, sends it, and waits for that send before it receives the next"
            " one: it never does both at once. Start the send with isend, and wait at the end.",
            when=lambda e: (
                _exceeds_rounds(e)
                and e.trace.traffic.rounds == e.case.n - 1 + 2 * (_pieces(e.case) - 1)
            ),
        ),
        Mistake(
            "A message goes to a rank that is not the next in the chain. src sends to src + 1"
            " alone, that rank to src + 2, and so on, modulo n.",
            when=lambda e: e.diagnosis is Diagnosis.NOT_NEIGHBOUR,
        ),
        Mistake(
            "To the right of the last rank is rank 0: take both neighbours modulo n.",
            when=evidence.no_rank,
        ),
    ),
)


# Scatter and all-gather (van de Geijn). ---------------------------------------------


def _roots(draw: Draw) -> Iterator[Case]:
    for kind, src in draw.with_roots(kinds(draw.n)):
        yield draw.case(f"{kind} from rank {src}", x=draw.per_rank(kind), src=src)


def _with_shares(c: Case, has: Callable[[int, int], bool], even: bool) -> list[torch.Tensor]:
    """Return what ranks hold if the one at place v has only the shares i with ``has(v, i)``.

    With ``even`` the shares are cut at i·len/n; else the first ones are the longer ones.
    """
    whole, n = c.x[c.src].flatten(), c.n
    if even:
        edges = [i * len(whole) // n for i in range(n + 1)]
        shares = [slice(a, b) for a, b in pairwise(edges)]
    else:
        sizes = [len(part) for part in whole.tensor_split(n)]
        shares = [slice(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(n)]
    held = []
    for r, x in enumerate(c.x):
        mine = x.flatten().clone()
        for i, part in enumerate(shares):
            if r == c.src or has((r - c.src) % n, i):
                mine[part] = whole[part]
        held.append(mine.reshape(x.shape))
    return held


def _shares_of(has: Callable[[int, int, int], bool]) -> tuple[Gives, ...]:
    """Return the results if place v lacks share i unless ``has(v, i, n)``, by place and by rank."""

    def gives(c: Case, even: bool, by_rank: bool) -> list[torch.Tensor]:
        shift = c.src if by_rank else 0
        return _with_shares(c, lambda v, i: has((v + shift) % c.n, i, c.n), even)

    return tuple(
        partial(gives, even=even, by_rank=by_rank)
        for even in (True, False)
        for by_rank in (True, False)
    )


scatter_all_gather_broadcast = Exercise(
    signature="scatter_all_gather_broadcast(x: Tensor, src: int) -> None",
    summary="in place: src scatters x, then all gather it; no rank sends x twice",
    inputs=_roots,
    values=Values(lambda c: [c.x[c.src]] * c.n, result="x"),
    world_sizes=(1, 4, 2, 3, 5, 8),
    traffic=TrafficRules(
        limits=(
            point(sent_elements("≤", lambda c: 2 * (c.n - 1) * share(c))),
            point(largest_message("≤", lambda c: -(-c.n // 2) * share(c))),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, n), src=1 % n),
    mistakes=(
        *_NOT_TOLD,
        Mistake(
            "Only the scatter is there: each rank has one share of src's x. The all-gather is still"
            " to come.",
            gives=_shares_of(lambda v, i, n: v == i),
        ),
        Mistake(
            "The all-gather is a step short: each rank lacks the share that would come last. There"
            " are n − 1 steps.",
            gives=(
                *_shares_of(lambda v, i, n: i != (v + 1) % n),
                *_shares_of(lambda v, i, n: i != (v - 1) % n),
            ),
        ),
        Mistake(
            "The last elements do not arrive: the length is not divisible by n, and shares of equal"
            " size leave some over. x.view(-1).tensor_split(n) leaves none.",
            gives=lambda c: _tail_kept(c, lambda c: c.n),
        ),
        Mistake(
            "A message holds the whole of x. In the scatter, send each rank its share, or on a tree"
            " the shares of those that it will serve: half of x at most.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES
                and any(op.count == length(e.case) > 1 for op in e.trace.sends())
            ),
        ),
        Mistake(
            "src hands out every share to every rank. Each share should leave src once, and the"
            " ranks pass it on to each other.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TOO_MANY_BYTES
                and {op.rank for op in e.trace.sends()} == {e.case.src}
            ),
        ),
        Mistake(
            "x has rows and columns here, and your shares are rows, which cannot be shared out"
            " evenly among more ranks. Cut elements: x.view(-1).tensor_split(n).",
            when=_whole_rows,
        ),
        Mistake(
            "chunk(n) may give fewer than n shares, and here it did: use tensor_split(n), which"
            " always gives n, some of them empty if it must be.",
            when=lambda e: raised(e, "IndexError") and e.written(r"\bchunk\("),
        ),
        Mistake(
            "Every rank sends and none receives: a blocking send waits for its receive. Start"
            " with request = dist.isend(...), then recv, then request.wait().",
            when=evidence.all_send,
        ),
        Mistake(
            "A rank sends to itself, or receives from itself. Does src send a share to itself? Its"
            " own is in place already.",
            when=evidence.to_itself,
        ),
        Mistake(
            "The shares are not all of one size, and both ends of a message must mean the same one."
            " Do both count shares in the same way, by rank or by the place after src? And is your"
            " buffer as long as the share that comes?",
            when=lambda e: (
                e.diagnosis is Diagnosis.SIZE_MISMATCH and length(e.case) % e.case.n != 0
            ),
        ),
        *evidence.BUFFER_RACES,
    ),
)


# The best number of pieces. ---------------------------------------------------------


def pipeline_seconds(n: int, size: int, alpha: float, beta: float, pieces: int) -> Fraction:
    """Return the exact seconds of a pipelined broadcast of ``size`` bytes along a chain."""
    return (n - 2 + pieces) * (Fraction(alpha) + Fraction(beta) * size / pieces)


def settled(size: int, square: float | Fraction) -> int:
    """Return the best whole number where the best real one is √square, from 1 to ``size``.

    k + 1 pieces are better than k as long as k(k + 1) is below the square.
    """
    low = math.isqrt(int(square))
    return max(1, min(low + (low * (low + 1) < square), size))


def best(n: int, size: int, alpha: float, beta: float) -> int:
    """Return the best number of pieces; the cost is convex in it, with one minimum."""
    if n <= 2:
        return 1
    return settled(size, Fraction(beta) * (n - 2) * size / Fraction(alpha))


#: Name, ranks, bytes, α in seconds, β in seconds per byte.
_CHAINS: tuple[tuple[str, int, int, float, float], ...] = (
    ("10 ranks, 2000 bytes", 10, 2000, 1e-6, 1.01e-9),
    ("512 ranks, 64 MiB", 512, 64 << 20, 1e-5, 1e-10),
    ("6 ranks, where 1.45 would be best", 6, 1000, 1e-6, 2.1e-6 / 4000),
    ("6 ranks, where 1.38 would be best", 6, 1000, 1e-6, 1.9e-6 / 4000),
    ("3 ranks, a megabyte", 3, 10**6, 1.3e-5, 1e-9),
    ("2 ranks, a megabyte", 2, 10**6, 1e-5, 1e-9),
    ("1 rank, a megabyte", 1, 10**6, 1e-5, 1e-9),
    ("1000 ranks, 7 bytes on a slow link", 1000, 7, 1e-7, 1e-4),
    ("8 ranks, no bytes", 8, 0, 1e-5, 1e-9),
    ("8 ranks, bytes cost nothing", 8, 10**6, 1e-5, 0.0),
    ("8 ranks, a long latency", 8, 100, 1e-3, 1e-9),
    ("4096 ranks, a gigabyte", 4096, 10**9, 1e-7, 1e-9),
)


def _chains(draw: Draw) -> Iterator[Case]:
    for name, n, size, alpha, beta in _CHAINS:
        # a little of chance, and never so much that another number would be best or nearly so
        chance = abs(draw.factors(Kind(torch.float64, (1,))).item())
        slow = alpha * (1 + 0.01 * chance)
        k = best(n, size, slow, beta)
        while _nearly_two(n, size, slow, beta, k):
            slow *= 1.0001
            k = best(n, size, slow, beta)
        yield draw.case(name, n=n, nbytes=size, alpha=slow, beta=beta)


def _nearly_two(n: int, size: int, alpha: float, beta: float, k: int) -> bool:
    """Return whether a number beside the best one costs the same, up to the error of a float."""
    if n <= 2:
        return False
    least = pipeline_seconds(n, size, alpha, beta, k)
    others = [one for one in (k - 1, k + 1) if 1 <= one <= max(1, size)]
    costs = (pipeline_seconds(n, size, alpha, beta, one) for one in others)
    return any(cost - least < least * Fraction(1, 10**11) for cost in costs)


def _by(formula: Callable[[int, int, float, float], float]) -> tuple[Gives, Gives]:
    """Return the results if the square of the best number were another.

    Of the whole numbers beside the root one is chosen by the same formula, or by the right cost.
    """

    def gives(c: Case, right: bool) -> list[int] | None:
        n, size, alpha, beta = c.arguments(0)
        if n <= 2 or not size or not beta:
            return None
        square = formula(n, size, alpha, beta)
        if not right:
            return [settled(size, square)]
        low = math.isqrt(int(square))
        around = sorted({max(1, min(k, size)) for k in (low, low + 1)})
        return [min(around, key=lambda k: pipeline_seconds(n, size, alpha, beta, k))]

    return partial(gives, right=False), partial(gives, right=True)


def _rounded(how: Callable[[float], int], capped: bool = True) -> Gives:
    """Return the results if the root is rounded instead of comparing both neighbours."""

    def gives(c: Case) -> list[int] | None:
        n, size, alpha, beta = c.arguments(0)
        if n <= 2 or not size or not beta:
            return None
        k = how(math.sqrt((n - 2) * size * beta / alpha))
        return [max(1, min(k, size) if capped else k)]

    return gives


def _uncapped(c: Case) -> list[int] | None:
    n, size, alpha, beta = c.arguments(0)
    if n <= 2 or not size or not beta:
        return None
    return [settled(sys.maxsize, (n - 2) * size * beta / alpha)]


best_pieces = Exercise(
    signature="best_pieces(n: int, nbytes: int, alpha: float, beta: float) -> int",
    summary="the number of pieces that makes a pipelined broadcast fastest",
    inputs=_chains,
    world_sizes=(1,),
    values=Values(lambda c: [best(*c.arguments(0))]),
    mistakes=(
        Mistake(
            "There is at least one piece, even where nothing has to be cut: the result is never"
            " below 1.",
            when=lambda e: type(e.actual[0]) is int and e.actual[0] < 1,
        ),
        Mistake(
            "nbytes and beta may be 0, and n may be 1 or 2. Do not divide by anything"
            " that may be 0.",
            when=lambda e: e.says("ZeroDivisionError"),
        ),
        Mistake(
            "n may be 1, and then n − 2 is negative and has no root. On one rank or two nothing is"
            " passed on, so one piece is best.",
            when=lambda e: (
                e.case.columns["n"] == 1
                and (e.says("math domain") or e.says("nonnegative") or e.says("complex"))
            ),
        ),
        Mistake(
            "On two ranks nothing is passed on, so more pieces only cost more latencies: one"
            " is best. On one rank nothing is sent at all.",
            when=lambda e: e.case.columns["n"] <= 2 and type(e.actual[0]) is int,
        ),
        Mistake(
            "A piece has at least one byte: there are at most nbytes pieces.",
            gives=_uncapped,
        ),
        Mistake(
            "The root is rounded to the nearest whole number. Just below 1.5 that is 1, where 2"
            " pieces are faster: compare the seconds of both neighbours.",
            gives=(_rounded(round), _rounded(lambda k: math.floor(k + 0.5))),
        ),
        Mistake(
            "The root is rounded down. The best whole number may be the one above it: compare the"
            " seconds of both.",
            gives=(_rounded(math.floor), _rounded(math.floor, capped=False)),
        ),
        Mistake(
            "The root is rounded up. The best whole number may be the one below it: compare the"
            " seconds of both.",
            gives=(_rounded(math.ceil), _rounded(math.ceil, capped=False)),
        ),
        Mistake(
            "The first piece passes n − 1 links, but the last one starts k − 1 rounds later: n − 2"
            " + k rounds in all. So the root is of (n − 2)·S·β/α.",
            gives=(
                *_by(lambda n, s, a, b: (n - 1) * s * b / a),
                *_by(lambda n, s, a, b: n * s * b / a),
            ),
        ),
        Mistake(
            "The number of ranks is missing: the longer the chain, the more pieces pay off.",
            gives=_by(lambda n, s, a, b: s * b / a),
        ),
        Mistake(
            "alpha and beta are swapped: a longer latency speaks for fewer pieces.",
            gives=_by(lambda n, s, a, b: (n - 2) * s * a / b),
        ),
        Mistake(
            "The square root is missing: the derivative of kα + (n − 2)Sβ/k is zero where k² ="
            " (n − 2)Sβ/α.",
            gives=_by(lambda n, s, a, b: ((n - 2) * s * b / a) ** 2),
        ),
        Mistake(
            "You multiply by 8. beta is in seconds per byte, and nbytes are bytes: there are no"
            " bits here.",
            gives=_by(lambda n, s, a, b: 8 * (n - 2) * s * b / a),
        ),
    ),
)


# Two trees. -------------------------------------------------------------------------

_NAMES = ("first", "second")


def _report_in_rank(double_trees: Callable[[int], Any], n: int, look: str) -> dict[str, str]:
    """Call the answer and report what holds of its trees; this travels to the ranks."""
    returned = double_trees(n)
    fault = _malformed(returned, n)
    if look == "roles":
        # lists without a single parent would do for this, so only trees are looked at
        if fault != _sound(n) or not all(map(_is_tree, returned)):
            return {}
        inner = [{p for p in tree if p is not None} for tree in returned]
        return {"ranks with children in both trees": _named(inner[0] & inner[1])}
    facts = {"the result": fault}
    for name, place in zip(_NAMES, range(2), strict=True):
        tree = returned[place] if fault == _sound(n) else [None] * n
        depths = _depths(tree)
        facts[f"roots of the {name} tree"] = str(tree.count(None))
        facts[f"ranks that never reach the root of the {name} tree"] = _named(
            r for r, depth in enumerate(depths) if depth is None
        )
        facts[f"ranks with more than two children in the {name} tree"] = _named(
            r for r in range(n) if tree.count(r) > 2
        )
        most = (n - 1).bit_length() + 1
        deepest = max(depth or 0 for depth in depths)
        facts[f"edges from the deepest rank to the root of the {name} tree"] = (
            f"at most {most}" if deepest <= most else str(deepest)
        )
    return facts


def _sound(n: int) -> str:
    return f"two lists of {n} parents"


def _malformed(returned: Any, n: int) -> str:
    """Return what is wrong with the form of a result; what it should be if nothing is."""
    if not isinstance(returned, (list, tuple)) or len(returned) != 2:
        return with_article(type(returned).__name__)
    for name, tree in zip(_NAMES, returned, strict=True):
        if not isinstance(tree, (list, tuple)):
            return f"a pair whose {name} entry is {with_article(type(tree).__name__)}"
        if len(tree) != n:
            return f"a pair whose {name} list has {len(tree)} entries"
        for r, parent in enumerate(tree):
            if parent is not None and (type(parent) is not int or not 0 <= parent < n):
                return f"a pair whose {name} list has {parent!r} as the parent of rank {r}"
    return _sound(n)


def _depths(tree: Sequence[int | None]) -> list[int | None]:
    """Return the number of edges from each rank to a root; None where a circle never ends."""
    found: list[int | None] = []
    for rank in range(len(tree)):
        depth, here = 0, tree[rank]
        while here is not None and depth <= len(tree):
            depth, here = depth + 1, tree[here]
        found.append(depth if here is None else None)
    return found


def _is_tree(tree: Sequence[int | None]) -> bool:
    """Return whether there is one root, and every rank leads to it."""
    return tree.count(None) == 1 and None not in _depths(tree)


def _named(ranks: Any) -> str:
    """Return ranks in words, the first few of many."""
    few = sorted(ranks)
    shown = ", ".join(map(str, few[:4]))
    return f"{shown}, …" if len(few) > 4 else shown or "none"


def _right(c: Case) -> list[dict[str, str]]:
    """Return the report on trees that are right."""
    if c.look == "roles":
        return [{"ranks with children in both trees": "none"}]
    facts = {"the result": _sound(c.n_ranks)}
    for name in _NAMES:
        facts |= {
            f"roots of the {name} tree": "1",
            f"ranks that never reach the root of the {name} tree": "none",
            f"ranks with more than two children in the {name} tree": "none",
            f"edges from the deepest rank to the root of the {name} tree": (
                f"at most {(c.n_ranks - 1).bit_length() + 1}"
            ),
        }
    return [facts]


#: Numbers of ranks: small ones to read, powers of two, their neighbours, and large ones.
_FORESTS = (7, 8, 5, 2, 3, 4, 6, 1, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 100, 1000)


def _forests(draw: Draw) -> Iterator[Case]:
    for look, words in (("trees", "as trees"), ("roles", "who passes on")):
        for n in _FORESTS:
            yield draw.case(f"{n} rank{'s' * (n > 1)}, {words}", n_ranks=n, look=look)


def _told(e: Evidence, words: str) -> bool:
    """Return whether a fact that begins with these words is the first that is wrong."""
    got, want = e.actual[0], _right(e.case)[0]
    wrong = next((name for name in want if got[name] != want[name]), "")
    return wrong.startswith(words)


def _both_at(e: Evidence, sizes: Callable[[int], bool]) -> bool:
    """Return whether ranks have children in both trees, and only where n is such a number."""
    failed = [one.case for one in e.failed]
    return all(c.look == "roles" and sizes(c.n_ranks) for c in failed) and any(
        one.case.look == "roles" and one.case.n_ranks > 2 and not sizes(one.case.n_ranks)
        for one in e.passed
    )


double_trees = Exercise(
    signature="double_trees(n: int) -> tuple[list, list]",
    summary="the parents in two trees over the same ranks; no rank has children in both",
    inputs=_forests,
    world_sizes=(1,),
    adapter=_report_in_rank,
    values=Values(_right),
    # what is no tree, or ends in an exception, says nothing of who passes on
    point=lambda one: one.case.look == "roles" and one.diagnosis is Diagnosis.WRONG_VALUE,
    mistakes=(
        Mistake(
            "It is right where n is even, and where n is odd a rank has children in both trees. If"
            " the second tree is the first with every rank moved on by one, the last rank becomes"
            " rank 0: does it have children in one tree, and rank 0 in the other?",
            when=lambda e: _both_at(e, lambda n: n % 2 == 1),
        ),
        Mistake(
            "It is right where n is odd, and where n is even a rank has children in both trees."
            " With n even, exactly half of the ranks have children in each tree, so the second has"
            " to use just the other half.",
            when=lambda e: _both_at(e, lambda n: n % 2 == 0),
        ),
        Mistake(
            "Both are trees, but some ranks have children in both. A binary tree needs only n // 2"
            " ranks with children: let the second tree use the ranks that have none in the first.",
            when=lambda e: _told(e, "ranks with children in both"),
        ),
        Mistake(
            "A tree is too deep. If each level is as full as it can be, the number of ranks doubles"
            " from level to level: ⌈log₂ n⌉ edges are enough, and one more is allowed.",
            when=lambda e: _told(e, "edges from the deepest"),
        ),
        Mistake(
            "A rank has more than two children. A binomial tree has many at its root; here a rank"
            " passes on to two at most.",
            when=lambda e: _told(e, "ranks with more than two"),
        ),
        Mistake(
            "Each tree has one root, whose parent is None; every other rank has a parent.",
            when=lambda e: _told(e, "roots of"),
        ),
        Mistake(
            "Follow the parents from the ranks that the message names: they lead round in a cycle"
            " and never to the root.",
            when=lambda e: _told(e, "ranks that never reach"),
        ),
        Mistake(
            "Return two lists of n entries. Entry r is the parent of rank r, a Python int from 0 to"
            " n − 1, and None for the root.",
            when=lambda e: _told(e, "the result"),
        ),
    ),
)
