"""Chapter 12: programs that hang, and the ranks that can never go on."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from grader.course.chapters import evidence
from grader.exercise.cases import (
    OPS,
    Case,
    Draw,
    Kind,
    PerRank,
    demo,
    kinds,
    magnitude,
    reduced,
    tags,
)
from grader.exercise.declaration import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.exercise.limits import blocking_only, calls, combined, messages, moved, point, rounds
from headcount.core.verdict import Diagnosis


def _all_wait_in(e: Evidence, call: str) -> bool:
    """Return whether all ranks form one cycle, and each of them waits in this call."""
    return (
        e.failure is not None
        and len(e.failure.cycle) == e.case.n
        and all(wait.call == call for wait in e.failure.waits)
    )


def _all_wait_for(e: Evidence, side: int) -> bool:
    """Return whether every rank waits to receive from its neighbour on the left, −1, or right."""
    waits = e.failure.waits if e.failure else ()
    return _all_wait_in(e, "recv") and all(
        wait.peers == ((wait.rank + side) % e.case.n,) for wait in waits
    )


def _receive_posted(e: Evidence) -> bool:
    """Return whether a rank that waits has a receive in flight."""
    return any(op.kind == "recv" and not op.matched for ops in e.trace.operations for op in ops)


def _fewer_ranks_ran(e: Evidence) -> bool:
    """Return whether messages were sent and received in a smaller world that passed."""
    return any(
        one.case.n < e.case.n and one.limit is None and one.trace.traffic.messages
        for one in e.passed
    )


def _waits_for_a_collective(e: Evidence) -> bool:
    """Return whether a rank of a deadlock waits in a collective."""
    if e.failure is None or e.diagnosis is not Diagnosis.DEADLOCK:
        return False
    return any(wait.call not in ("send", "recv") for wait in e.failure.waits)


unblock_ring = Exercise(
    signature="unblock_ring(x: Tensor) -> Tensor",
    summary="the left neighbour's x, without a ring of sends that wait",
    inputs=lambda draw: (draw.case(f"{kind}", x=draw.per_rank(kind)) for kind in kinds(draw.n)),
    values=Values(lambda c: [c.x[(r - 1) % c.n] for r in c.ranks]),
    traffic=TrafficRules(
        limits=(
            messages("=", lambda c: c.n if c.n > 1 else 0),
            point(blocking_only()),
            rounds("≤", lambda c: 2 + c.n % 2 if c.n > 1 else 0),
        ),
        least=moved,
    ),
    demo=lambda n: demo(n, x=tags(n, 1)),
    mistakes=(
        Mistake(
            "isend, irecv and batches start messages in which no rank waits: the cure of chapter"
            " 01. Here send and recv have to do. Which ranks could receive first?",
            when=lambda e: (
                e.here.limit is not None and e.here.limit.quantity == blocking_only().quantity
            ),
        ),
        Mistake(
            "There is no such rank. The last rank's right neighbour is rank 0, and rank 0's left"
            " one is the last: (rank + 1) % n and (rank − 1) % n.",
            when=lambda e: e.refused("NoSuchRank"),
        ),
        Mistake(
            "Neighbours swap in pairs. On a ring what you send goes to the right, and what you get"
            " comes from the left: two different ranks if there are more than two.",
            when=lambda e: (
                e.case.n > 2
                and e.trace.traffic.messages > 0
                and all(op.peer == op.rank ^ 1 for op in e.trace.sends())
            ),
        ),
        Mistake(
            "Every rank receives first now. That is the same cycle with its arrows reversed: the"
            " ranks must not all do the same.",
            when=lambda e: _all_wait_for(e, -1) and not any(e.trace.sends()),
        ),
        Mistake(
            "Every rank waits for a message from its right neighbour. What goes to rank + 1 is"
            " received from rank − 1.",
            when=lambda e: e.case.n > 2 and _all_wait_for(e, 1),
        ),
        Mistake(
            "Every rank waits for its send to end, and the receives that are in flight are for"
            " messages from other ranks. What goes to rank + 1 is received from rank − 1.",
            when=lambda e: _all_wait_in(e, "send") and _receive_posted(e),
        ),
        Mistake(
            "isend does not wait, but wait() does: here every rank waits for its send before it"
            " has posted its receive.",
            when=lambda e: _all_wait_in(e, "send") and e.calls("isend") and not e.calls("send"),
        ),
        Mistake(
            "Every rank waits in its send here, but with fewer ranks it worked. Which rank"
            " receives first must not depend on the number of ranks: let rank 0 always do so, for"
            " example.",
            when=lambda e: _all_wait_in(e, "send") and _fewer_ranks_ran(e),
        ),
        Mistake(
            "Still a cycle: every rank waits in its send, and a send returns when its receive has"
            " been posted. One rank at least has to receive before it sends.",
            when=lambda e: _all_wait_in(e, "send"),
        ),
        Mistake(
            "While a tensor is on its way, nothing may be received into it: receive into another"
            " one, such as torch.empty_like(x).",
            when=lambda e: e.diagnosis is Diagnosis.BUFFER_RACE and e.races("recv", "send"),
        ),
    ),
)


def _sums(e: Evidence) -> bool:
    """Return whether ranks hold the sum in place of the maximum, rounded in whatever order."""
    would = (reduced(OPS["SUM"], e.case.x) + e.case.x[0]).double()
    return all(torch.allclose(held.double(), would, 2e-2, 2e-2) for held in e.actual)


def _too_high(e: Evidence) -> bool:
    """Return whether rank 0's x comes back as one number wherever it is smaller than that."""
    x, largest = e.case.x[0], reduced(OPS["MAX"], e.case.x)
    others = [(held - largest)[held != largest + x].max() for held in e.actual]
    would = [(largest + x.clamp(min=other)).double() for other in others]
    # what is added to a much larger number loses digits
    pairs = zip(e.actual, would, strict=True)
    return len(x) > 1 and all(torch.allclose(held.double(), one, 1e-2, 0) for held, one in pairs)


def _of_both_signs(draw: Draw) -> Iterator[Case]:
    for kind in kinds(draw.n):
        x = draw.per_rank(replace(kind, special=False))  # gloo's maximum may lose a NaN
        # rank 0's numbers are negative where they are readable, too: 0 is no neutral number
        yield draw.case(f"{kind}", x=PerRank(t if r % 2 else -t - 1 for r, t in enumerate(x)))
    far = draw.per_rank(Kind(torch.float32, (9,)))
    # nor is any other number that floats go beyond
    yield draw.case("9 float32 numbers far below 0", x=PerRank(-1e36 * (t.abs() + 1) for t in far))


unblock_order = Exercise(
    signature="unblock_order(x: Tensor) -> Tensor",
    summary="MAX over ranks of x plus rank 0's x; the same collectives in the same order",
    inputs=_of_both_signs,
    values=Values(lambda c: [reduced(OPS["MAX"], c.x) + c.x[0]] * c.n),
    traffic=TrafficRules(
        limits=(point(calls({"all_reduce", "broadcast"}, "≤", lambda c: c.n)),),
        # the largest may be rank 0's own x, and then no bytes need to reach it
        least=lambda c, expected: combined(c, [c.x[0], *expected[1:]]),
        allowed=frozenset({"all_reduce", "broadcast"}),
    ),
    mistakes=(
        Mistake(
            "That is the sum over ranks plus rank 0's x: all_reduce sums unless you say"
            " op=dist.ReduceOp.MAX.",
            when=evidence.always(_sums),
        ),
        Mistake(
            "Where rank 0's x is very small, a larger number comes back: the other ranks put it in"
            " the place of rank 0's x, and MAX takes the larger. Let them put in what no x is"
            " smaller than: −inf, and for integers torch.iinfo(x.dtype).min.",
            when=evidence.always(_too_high),
        ),
        Mistake(
            "Integers have no −inf. There the number that no x is smaller than is"
            " torch.iinfo(x.dtype).min.",
            when=lambda e: (
                e.raised("RuntimeError", "OverflowError")
                and e.written(r"\binf\b")
                and not any(one.case.x[0].is_floating_point() for one in e.failed)
            ),
        ),
        Mistake(
            "Does every rank make both calls? A collective needs all of them.",
            when=_waits_for_a_collective,
        ),
    ),
)


_LOSSES = tuple(Kind(dtype, ()) for dtype in (torch.float32, torch.float64, torch.bfloat16))


def _losses(draw: Draw) -> Iterator[Case]:
    for kind, logger in draw.with_roots(_LOSSES):
        log = PerRank(r == logger for r in draw.ranks)
        yield draw.case(f"{kind}, rank {logger} logs", loss=draw.per_rank(kind, "AVG"), log=log)


unblock_branch = Exercise(
    signature="unblock_branch(loss: Tensor, log: bool) -> Tensor",
    summary="the mean loss on every rank, whichever of them logs",
    inputs=_losses,
    values=Values(
        lambda c: [reduced(OPS["AVG"], c.loss)] * c.n,
        reduced=lambda c: c.n,
        magnitude=lambda c: [magnitude(OPS["AVG"], c.loss)] * c.n,
    ),
    traffic=TrafficRules(allowed=frozenset({"all_reduce"})),
    mistakes=(
        Mistake(
            "The all-reduce waits for ranks that never call it. Every rank has to, whether it logs"
            " or not: is the call in a branch, or behind a return, that some ranks take and others"
            " do not?",
            when=lambda e: _waits_for_a_collective(e) and bool(e.failure and e.failure.ended),
        ),
        Mistake(
            "A number comes back, where a tensor is asked for: item() and float() make a number of"
            " a tensor. Print that number, but return the tensor.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE and all(isinstance(v, float) for v in e.actual)
            ),
        ),
    ),
)


# Who can never go on. -------------------------------------------------------------

#: Wait-for graphs; 9 is never a key.
_GRAPHS: Mapping[str, Mapping[int, int | None]] = {
    "no ranks": {},
    "all are running": {0: None, 1: None, 2: None},
    "one waits for itself": {0: 0, 1: None},
    "two wait for each other": {0: 1, 1: 0},
    "a ring of five": {0: 1, 1: 2, 2: 3, 3: 4, 4: 0},
    "a chain to a running rank": {0: 1, 1: 2, 2: 3, 3: None},
    "a chain to a rank that is no key": {0: 1, 1: 2, 2: 9},
    "a chain into a cycle": {0: 1, 1: 2, 2: 3, 3: 4, 4: 3},
    "a chain to one that waits for itself": {0: 1, 1: 2, 2: 2, 3: 0},
    "two cycles and a rank that runs": {0: 1, 1: 0, 2: 3, 3: 4, 4: 2, 5: None, 6: 5},
    "cycles, chains, and ranks that run": {
        0: 1, 1: 2, 2: 0, 3: 0, 4: 3, 5: 6, 6: 5, 7: 5, 8: None, 10: 8, 11: 10, 12: 9, 13: 13,
    },
    "a long chain into a cycle": {k: k + 1 if k < 60 else 50 for k in range(10, 61)},
}  # fmt: skip


def _graphs(draw: Draw) -> Iterator[Case]:
    for name, graph in _GRAPHS.items():
        for how, new in _numberings(draw, [*graph, *(p for p in graph.values() if p is not None)]):
            waits = {new[r]: None if goal is None else new[goal] for r, goal in graph.items()}
            yield draw.case(f"{name}{how}", waits_for=_downwards(waits))


def _numberings(
    draw: Draw, ranks: Iterable[int], keep_order: bool = False
) -> Iterator[tuple[str, Mapping[int, int]]]:
    """Yield new numbers for the ranks of a graph, each time with words that say which.

    The first two are not drawn, so that 0, which Python takes for false, is the first rank of
    every graph, and then the last, whatever the seed is.
    """
    known = sorted(set(ranks))
    drawn = draw.tensor(Kind(torch.float64, (1000,))).argsort().tolist()[: len(known)]
    yield "", dict(zip(known, range(len(known)), strict=True))
    if not keep_order:
        yield ", the last rank first", dict(zip(known[::-1], range(len(known)), strict=True))
    chosen = sorted(drawn) if keep_order else drawn
    yield ", other numbers", dict(zip(known, chosen, strict=True))


def _downwards(graph: Mapping[int, Any]) -> dict[int, Any]:
    """Return a graph with its highest rank first, so that the keys are never in order."""
    return {rank: graph[rank] for rank in sorted(graph, reverse=True)}


def _leads_into_a_cycle(waits_for: Mapping[int, int | None], rank: int) -> bool:
    met: set[int] = set()
    at: int | None = rank
    while at is not None and at in waits_for and at not in met:
        met.add(at)
        at = waits_for[at]
    return at in met


def _stuck(waits_for: Mapping[int, int | None]) -> list[int]:
    """Return the stuck ranks, which are those whose way leads into a cycle."""
    return [rank for rank in sorted(waits_for) if _leads_into_a_cycle(waits_for, rank)]


def _unsorted(right: Callable[[Case], list[int]]) -> Mistake:
    """Make the mistake of returning the right ranks in another order, whichever it is."""
    return Mistake(
        "The ranks are right, their order is not: return sorted(...).",
        when=lambda e: any(
            isinstance(a, (list, tuple)) and list(a) != right(e.case) == sorted(a) for a in e.actual
        ),
    )


def _changed_in_a_loop(e: Evidence) -> bool:
    """Return whether what is looped over has changed.

    Plain Python raises this class of error for little else: where a generator runs into the end of
    an iterator, which takes next(), and where a program says so itself.
    """
    return (
        e.raised("RuntimeError")
        and e.loops(r".+")
        and e.written(_CHANGES)
        and not e.calls("next")
        and not e.written(r"\b(StopIteration|RuntimeError|torch|dist|deque)\b")
    )


#: What adds to a dict or a set, or removes from it.
_CHANGES = (
    r"\.(add|discard|remove|pop|popitem|clear|update|setdefault|\w+_update)\("
    r"|\bdel |\] = |[-|&^]= "
)

#: What Python's own exceptions prove about reading ``waits_for``.
_KEYS = (
    Mistake(
        "A rank that runs maps to None, and None is not a rank to look up: stop there.",
        when=lambda e: (
            e.raised("KeyError") and e.failure is not None and e.failure.raised[1] == "None"
        ),
    ),
    Mistake(
        "A rank may wait for one that is not a key of waits_for, and such a rank does not wait"
        " itself. Look it up with waits_for.get(rank), or check first whether it is in waits_for.",
        when=lambda e: (
            e.raised("KeyError")
            and e.failure is not None
            and int(e.failure.raised[1]) not in e.case.waits_for
        ),
    ),
    Mistake(
        "A loop over a dict or a set must not add to it or remove from it: loop over a copy, such"
        " as list(...).",
        when=_changed_in_a_loop,
    ),
)


def _wrong_lists(e: Evidence) -> list[tuple[set[int], set[int], set[int]]]:
    """Return the ranks of each wrong list, those that are stuck, and those that wait."""
    return [
        (
            set(one.actual[0]),
            set(_stuck(one.case.waits_for)),
            {rank for rank, goal in one.case.waits_for.items() if goal is not None},
        )
        for one in e.failed
    ]


stuck_ranks = Exercise(
    signature="stuck_ranks(waits_for: dict[int, int | None]) -> list[int]",
    summary="ranks that can never go on, sorted",
    inputs=_graphs,
    world_sizes=(1,),
    values=Values(lambda c: [_stuck(c.waits_for)] * c.n),
    mistakes=(
        _unsorted(lambda c: _stuck(c.waits_for)),
        Mistake(
            "On a cycle the arrows never end, so a function that calls itself along them never"
            " does either: remember where you have been.",
            when=lambda e: e.raised("RecursionError") and bool(_stuck(e.case.waits_for)),
        ),
        Mistake(
            "On a cycle the arrows never end: remember where you have been, and stop when you come"
            " there again.",
            # a walk and a loop that waits for a set to become empty differ in nothing but the text
            when=lambda e: (
                e.diagnosis is Diagnosis.TIMEOUT
                and bool(_stuck(e.case.waits_for))
                and e.written(r"\b(\w+) = waits_for(\.get\(|\[)\1\b")
            ),
        ),
        *_KEYS,
        Mistake(
            "Some ranks in your list are not stuck: their arrows end at a rank that runs, after one"
            " step or after many.",
            when=lambda e: all(stuck < held <= wait for held, stuck, wait in _wrong_lists(e)),
        ),
        Mistake(
            "Ranks are missing from your list: their arrows lead into a cycle, too. Whoever waits"
            " for a stuck rank is stuck as well.",
            when=lambda e: all(held < stuck for held, stuck, _ in _wrong_lists(e)),
        ),
    ),
)


# The same with waits for any or for all of several ranks, and ranks that have returned. -----

#: The wait of a rank: "any" or "all" and the ranks it waits for, or ``None``.
_Waits = Mapping[int, tuple[str, list[int]] | None]

#: Chains that keep their order when ranks are renamed: whoever goes through the ranks one way
#: needs many passes for one of them.
_UPWARDS, _DOWNWARDS = "each of ten waits for the next", "each of ten waits for the one before"

#: Wait-for graphs, and the ranks that have returned; 9 is never a key.
_ANY_ALL: Mapping[str, tuple[_Waits, set[int]]] = {
    "no ranks": ({}, set()),
    "one of the picture's, OR": (
        {0: ("any", [1, 2, 3]), 1: ("all", [2]), 2: ("all", [1]), 3: None}, set(),
    ),
    "one of the picture's, AND": (
        {0: ("all", [1, 2]), 1: ("all", [2]), 2: ("all", [1]), 3: ("all", [1, 2])}, set(),
    ),
    "a rank that has returned is waited for": ({0: ("all", [1]), 2: ("any", [0, 3]), 3: None}, {1}),
    "one of two has returned": (
        {0: ("all", [1, 2]), 3: ("any", [1, 2]), 2: None, 4: ("any", [1]), 5: ("all", [3])}, {1},
    ),
    "ranks that have returned are keys, too": (
        {0: ("any", [1]), 1: ("all", [0]), 2: None, 3: ("all", [2])}, {1, 2},
    ),
    "a long way to a rank that runs": (
        {k: ("all", [k + 1]) if k % 2 else ("any", [k + 1, 31]) for k in range(30)}, {31},
    ),
    "a long way to a rank that has returned": (
        {k: ("all", [k + 1]) if k % 2 else ("any", [k + 1]) for k in range(30)}, {30},
    ),
    "rank 0 runs and is waited for": (
        {0: None, 1: ("any", [0]), 2: ("all", [0, 1]), 3: ("any", [4, 0]), 4: ("any", [4])}, set(),
    ),
    "rank 0 runs, and is no key": ({1: ("any", [0]), 2: ("all", [1, 0]), 3: ("all", [3])}, set()),
    "rank 0 has returned": (
        {1: ("all", [0, 2]), 2: None, 3: ("any", [0, 2]), 4: ("any", [0]), 5: ("all", [0])}, {0},
    ),
    "any of none, all of none": (
        {0: ("any", []), 1: ("all", []), 2: ("all", [1]), 3: ("any", [0, 1]), 4: ("all", [0])},
        set(),
    ),
    "a cycle with a way out": (
        {0: ("any", [1]), 1: ("any", [2, 3]), 2: ("any", [0]), 3: None, 4: ("all", [0, 1, 2])},
        set(),
    ),
    "a cycle without one": (
        {0: ("any", [1]), 1: ("any", [2, 3]), 2: ("any", [0]), 4: ("all", [0, 9]), 5: ("any", [9])},
        {3},
    ),
    "one waits for itself": ({0: ("any", [0]), 1: ("all", [1, 2]), 3: ("any", [3, 2])}, set()),
    "cycles that only their own members would end": (
        {0: ("all", [1, 2]), 1: ("any", [0, 2]), 2: ("any", [0, 1]), 3: ("any", [2, 9])}, set(),
    ),
    "all have returned": ({0: ("any", [1]), 1: ("all", [0])}, {0, 1}),
    _UPWARDS: ({k: ("all", [k + 1]) for k in range(9)} | {9: None}, set()),
    _DOWNWARDS: ({0: None} | {k: ("any", [k - 1]) for k in range(1, 10)}, set()),
}  # fmt: skip


def _any_all(draw: Draw) -> Iterator[Case]:
    for name, (graph, gone) in _ANY_ALL.items():
        peers = [p for wait in graph.values() if wait is not None for p in wait[1]]
        ordered = name in (_UPWARDS, _DOWNWARDS)
        for how, new in _numberings(draw, [*graph, *peers, *gone], keep_order=ordered):
            waits = {
                new[rank]: None if wait is None else (wait[0], [new[p] for p in wait[1]])
                for rank, wait in graph.items()
            }
            yield draw.case(
                f"{name}{how}", waits_for=_downwards(waits), gone={new[rank] for rank in gone}
            )


def _stuck_any_all(waits_for: _Waits, gone: Iterable[int]) -> list[int]:
    """Return the ranks that are left when each whose wait is over has been taken out.

    Those that can go on are the least fixpoint, so ranks that wait for one another are stuck.
    """
    waiting = {r: wait for r, wait in waits_for.items() if wait is not None and r not in gone}
    stuck, before = set(waiting), None
    while stuck != before:
        before = set(stuck)
        for r in before:
            how, peers = waiting[r]
            live = [p not in stuck and p not in gone for p in peers]
            if any(live) if how == "any" else all(live):
                stuck.remove(r)
    return sorted(stuck)


stuck_ranks_any_all = Exercise(
    signature="stuck_ranks_any_all(waits_for: dict[int, tuple[str, list[int]] | None],"
    " gone: set[int]) -> list[int]",
    summary="ranks that can never go on, where waits are for any or all, and some have returned",
    inputs=_any_all,
    world_sizes=(1,),
    values=Values(lambda c: [_stuck_any_all(c.waits_for, c.gone)] * c.n),
    mistakes=(
        _unsorted(lambda c: _stuck_any_all(c.waits_for, c.gone)),
        Mistake(
            "A rank that has returned is not stuck, it is done: leave the ranks in gone out of the"
            " list, also where waits_for has them.",
            when=lambda e: any(
                isinstance(a, (list, tuple)) and set(a) & e.case.gone for a in e.actual
            ),
        ),
        *_KEYS,
    ),
)
