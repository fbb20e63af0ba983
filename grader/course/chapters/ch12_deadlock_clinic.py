"""Chapter 12: programs that hang, and the ranks that can never go on."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import (
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
from grader.course.exercise import Evidence, Exercise, Mistake, TrafficRules, Values
from grader.course.limits import combined, messages, moved


def _all_wait_in(e: Evidence, call: str) -> bool:
    """Return whether all ranks form one cycle, and each of them waits in this call."""
    return (
        e.failure is not None
        and len(e.failure.cycle) == e.case.n
        and all(wait.call == call for wait in e.failure.waits)
    )


def _isend_and_wait(e: Evidence) -> bool:
    """Return whether the sends that all ranks wait for were started by isend."""
    return _all_wait_in(e, "send") and e.calls("isend") and not e.calls("send")


def _size_decides(e: Evidence) -> bool:
    """Return whether all ranks wait in send here, and other worlds passed with messages."""
    ran = {one.case.n for one in e.passed if one.limit is None and one.trace.traffic.messages}
    return _all_wait_in(e, "send") and bool(ran)


def _waits_for_a_collective(e: Evidence) -> bool:
    """Return whether a rank of a deadlock waits in a collective."""
    if e.failure is None or e.diagnosis is not Diagnosis.DEADLOCK:
        return False
    return any(wait.call not in ("send", "recv") for wait in e.failure.waits)


#: Advice for a deadlock of any shape.
_ONE_BY_ONE = (
    "Take the ranks of the message one by one: which call of which other rank would let this one"
    " go on, and does it ever come to that call?"
)

unblock_ring = Exercise(
    signature="unblock_ring(x: Tensor) -> Tensor",
    summary="the left neighbour's x, without a ring of sends that wait",
    inputs=lambda draw: (draw.case(f"{kind}", x=draw.per_rank(kind)) for kind in kinds(draw.n)),
    values=Values(lambda c: [c.x[(r - 1) % c.n] for r in c.ranks]),
    traffic=TrafficRules(limits=(messages("=", lambda c: c.n if c.n > 1 else 0),), least=moved),
    demo=lambda n: demo(n, x=tags(n, 1)),
    mistakes=(
        Mistake(
            "That is the right neighbour's x: it has travelled to the left. Send to rank + 1, and"
            " receive from rank − 1.",
            gives=lambda c: [c.x[(r + 1) % c.n] for r in c.ranks],
        ),
        Mistake(
            "You return your own x. Nothing hangs any more, but the work has to be done all the"
            " same: return what came from the left.",
            gives=lambda c: list(c.x),
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
            when=lambda e: _all_wait_in(e, "recv"),
        ),
        Mistake(
            "isend does not wait, but wait() does: here every rank waits for its send before it"
            " has posted its receive. Receive first, and wait for the send after that.",
            when=_isend_and_wait,
        ),
        Mistake(
            "Every rank waits in its send here, but with fewer ranks it worked. Which rank"
            " receives first must not depend on the number of ranks: let rank 0 always do so, for"
            " example.",
            when=_size_decides,
        ),
        Mistake(
            "Still a cycle: every rank waits in its send, and a send returns when its receive has"
            " been posted. One rank at least has to receive before it sends; or start the sends"
            " with isend, and wait for them after the receive.",
            when=lambda e: _all_wait_in(e, "send"),
        ),
        Mistake(
            "A rank that is alone is its own neighbour on both sides, and no rank can send to"
            " itself: with one rank, return a copy of x.",
            when=lambda e: e.case.n == 1 and e.says("same as the rank"),
        ),
        Mistake(
            "While a tensor is on its way, nothing may be received into it: receive into another"
            " one, such as torch.empty_like(x).",
            when=lambda e: e.diagnosis is Diagnosis.BUFFER_RACE and e.races("recv", "send"),
        ),
    ),
)


def _joined(
    c: Case, first: Callable[[int], torch.Tensor], second: Callable[[int], torch.Tensor]
) -> list[torch.Tensor]:
    return [first(r) + second(r) for r in c.ranks]


def _all(c: Case, op: str) -> torch.Tensor:
    return reduced(OPS[op], c.x)


def _sums(e: Evidence) -> bool:
    """Return whether every wrong result is the sum instead of the maximum, up to rounding."""

    def near(c: Case, actual: Sequence[torch.Tensor]) -> bool:
        would = _joined(c, lambda r: _all(c, "SUM"), lambda r: c.x[0])
        pairs = zip(actual, would, strict=True)
        return all(torch.allclose(a.double(), w.double(), 2e-2, 2e-2) for a, w in pairs)

    return e.diagnosis is Diagnosis.WRONG_VALUE and all(near(f.case, f.actual) for f in e.failed)


unblock_order = Exercise(
    signature="unblock_order(x: Tensor) -> Tensor",
    summary="MAX over ranks of x plus rank 0's x; the same collectives in the same order",
    inputs=lambda draw: (draw.case(f"{kind}", x=draw.per_rank(kind)) for kind in kinds(draw.n)),
    values=Values(lambda c: _joined(c, lambda r: _all(c, "MAX"), lambda r: c.x[0])),
    traffic=TrafficRules(
        # the largest may be rank 0's own x, and then no bytes need to reach it
        least=lambda c, expected: combined(c, [c.x[0], *expected[1:]]),
        allowed=frozenset({"all_reduce", "broadcast"}),
    ),
    mistakes=(
        Mistake(
            "That is the maximum alone: add rank 0's x.",
            gives=lambda c: [_all(c, "MAX")] * c.n,
        ),
        Mistake(
            "Each rank adds its own x to the maximum. It should be rank 0's: broadcast a copy.",
            gives=lambda c: _joined(c, lambda r: _all(c, "MAX"), lambda r: c.x[r]),
        ),
        Mistake(
            "Twice the maximum, and rank 0's x is missing. Does the broadcast work on a copy of x"
            " that no all-reduce has written into, and is that copy in your sum?",
            gives=lambda c: _joined(c, lambda r: _all(c, "MAX"), lambda r: _all(c, "MAX")),
        ),
        Mistake(
            "Twice rank 0's x, and the maximum is missing. Does the all-reduce work on a copy of x"
            " that no broadcast has written into, and is that copy in your sum?",
            gives=lambda c: _joined(c, lambda r: c.x[0], lambda r: c.x[0]),
        ),
        Mistake(
            "That is the sum over ranks plus rank 0's x: all_reduce sums unless you say"
            " op=dist.ReduceOp.MAX.",
            when=_sums,
        ),
        Mistake(
            "Does every rank make both calls? A collective needs all of them.",
            when=_waits_for_a_collective,
        ),
    ),
)


_LOSSES = tuple(Kind(dtype, ()) for dtype in (torch.float64, torch.float32, torch.bfloat16))


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
            "That is the sum of the losses: divide by the number of ranks.",
            gives=lambda c: [reduced(OPS["SUM"], c.loss)] * c.n,
        ),
        Mistake(
            "Every rank returns its own loss, as if there were no all-reduce. Without one there is"
            " no deadlock, but no mean either: let every rank call it, and return its result"
            " divided by n.",
            gives=lambda c: list(c.loss),
        ),
        Mistake(
            "Only the rank that logs has the mean. All of them took part in the all-reduce, so all"
            " can return it.",
            gives=lambda c: [
                reduced(OPS["AVG"], c.loss) if c.log[r] else c.loss[r] for r in c.ranks
            ],
        ),
        Mistake(
            "Divided twice. Divide once: either before the all_reduce, or after it.",
            gives=lambda c: [reduced(OPS["AVG"], c.loss) / c.n] * c.n,
        ),
        Mistake(
            "Ranks that do not log return nothing, but every rank has to return the mean.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE
                and all((e.actual[r] is None) is not e.case.log[r] for r in e.case.ranks)
                and e.case.n > 1
            ),
        ),
        Mistake(
            "The all-reduce waits for ranks that never call it. Every rank has to, whether it logs"
            " or not: only the print belongs in the branch.",
            when=lambda e: _waits_for_a_collective(e) and bool(e.failure and e.failure.ended),
        ),
        Mistake(
            ".item() turns a tensor into a number. Print that number, but return the tensor.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_TYPE
                and all(isinstance(v, float) for v in e.actual)
                and e.calls("item")
            ),
        ),
    ),
)


# Who can never go on. -------------------------------------------------------------

#: Wait-for graphs in small numbers, which are renamed before use; 9 is never a key.
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
        shuffled = draw.tensor(Kind(torch.float64, (1000,))).argsort().tolist()
        # the highest first, so that the order of the keys is never the right one
        renamed = {
            shuffled[rank]: None if goal is None else shuffled[goal] for rank, goal in graph.items()
        }
        yield draw.case(name, waits_for={rank: renamed[rank] for rank in sorted(renamed)[::-1]})


def _end(waits_for: Mapping[int, int | None], rank: int) -> tuple[set[int], int | None]:
    """Return the ranks on the way from ``rank``, and its end: a running rank, or one met before."""
    met: set[int] = set()
    at: int | None = rank
    while at is not None and at in waits_for and at not in met:
        met.add(at)
        at = waits_for[at]
    return met, at


def _stuck(waits_for: Mapping[int, int | None]) -> list[int]:
    """Return the stuck ranks, which are those whose way leads into a cycle (the oracle)."""
    return [rank for rank in sorted(waits_for) if _end(waits_for, rank)[1] in waits_for]


def _everywhere(c: Case, ranks: Iterable[int]) -> list[Any]:
    return [sorted(ranks)] * c.n


def _returns(c: Case, rank: int) -> bool:
    """Return whether the way from a rank leads back to it."""
    return _end(c.waits_for, rank)[1] == rank


def _unsorted(e: Evidence) -> bool:
    """Return whether the right ranks are returned in a wrong order."""
    right = _stuck(e.case.waits_for)
    return any(isinstance(a, (list, tuple)) and list(a) != right == sorted(a) for a in e.actual)


#: Mistakes that Python's own error messages prove about reading ``waits_for``.
_KEYS = (
    Mistake(
        "A rank that runs maps to None, and None is not a rank to look up: stop there.",
        when=lambda e: e.says("KeyError: None"),
    ),
    Mistake(
        "A rank may wait for one that is not a key of waits_for, and such a rank does not wait"
        " itself. Look it up with waits_for.get(rank), or check first whether it is in waits_for.",
        when=lambda e: (
            e.failure is not None
            and int(e.failure.message.rpartition("KeyError: ")[2]) not in e.case.waits_for
        ),
    ),
    Mistake(
        "A loop over a dict or a set must not add to it or remove from it: loop over a copy, such"
        " as list(...).",
        when=lambda e: e.says("changed size during iteration"),
    ),
)


stuck_ranks = Exercise(
    signature="stuck_ranks(waits_for: dict[int, int | None]) -> list[int]",
    summary="ranks that can never go on, sorted",
    inputs=_graphs,
    world_sizes=(1,),
    values=Values(lambda c: [_stuck(c.waits_for)] * c.n),
    mistakes=(
        Mistake(
            "The ranks are right, their order is not: return sorted(...).",
            when=_unsorted,
        ),
        Mistake(
            "Your list has only the ranks on cycles. A rank that waits for one of them can never"
            " go on either, though it is on no cycle itself.",
            gives=lambda c: _everywhere(c, (r for r in c.waits_for if _returns(c, r))),
        ),
        Mistake(
            "You find only pairs that wait for each other. A cycle may have any number of ranks.",
            gives=lambda c: _everywhere(
                c, (r for r, goal in c.waits_for.items() if c.waits_for.get(goal) == r)
            ),
        ),
        Mistake(
            "A rank that waits for itself is a cycle of one: it can never go on.",
            gives=lambda c: _everywhere(c, (r for r in _stuck(c.waits_for) if c.waits_for[r] != r)),
        ),
        Mistake(
            "A rank that is not a key is running, since nothing says that it waits. The ranks that"
            " wait for it can go on.",
            gives=lambda c: _everywhere(
                c, (r for r in c.waits_for if _end(c.waits_for, r)[1] is not None)
            ),
        ),
        Mistake(
            "These are all that wait. Many of them wait for a rank that runs, directly or through"
            " others, and will go on.",
            gives=lambda c: _everywhere(
                c, (r for r, goal in c.waits_for.items() if goal is not None)
            ),
        ),
        Mistake(
            "These are the ranks that can go on; return those that cannot.",
            gives=lambda c: _everywhere(c, set(c.waits_for) - set(_stuck(c.waits_for))),
        ),
        Mistake(
            "On a cycle the arrows never end, so a function that calls itself along them never"
            " does either: remember where you have been.",
            when=lambda e: e.says("Recursion") and bool(_stuck(e.case.waits_for)),
        ),
        Mistake(
            "On a cycle the arrows never end: remember where you have been, and stop when you come"
            " there again.",
            when=lambda e: (
                e.diagnosis is Diagnosis.TIMEOUT
                and bool(_stuck(e.case.waits_for))
                and e.written(r"\b(\w+) = waits_for(\.get\(|\[)\1\b")
            ),
        ),
        *_KEYS,
    ),
)


# The same with waits for any or for all of several ranks, and ranks that have returned. -----

#: The wait of a rank: "any" or "all" and the ranks it waits for, or ``None``.
_Waits = Mapping[int, tuple[str, list[int]] | None]

#: Wait-for graphs, and the ranks that have returned, in small numbers that are renamed
#: before use; 9 is never a key.
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
        {k: ("all", [k + 1]) if k % 2 else ("any", [k + 1, 30]) for k in range(30)}, set(),
    ),
    "a long way to a rank that has returned": (
        {k: ("all", [k + 1]) if k % 2 else ("any", [k + 1]) for k in range(30)}, {30},
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
}  # fmt: skip


def _any_all(draw: Draw) -> Iterator[Case]:
    for name, (graph, gone) in _ANY_ALL.items():
        shuffled = draw.tensor(Kind(torch.float64, (1000,))).argsort().tolist()
        renamed = {
            shuffled[rank]: None if wait is None else (wait[0], [shuffled[p] for p in wait[1]])
            for rank, wait in graph.items()
        }
        # the highest first, so that the order of the keys is never the right one
        ordered = {rank: renamed[rank] for rank in sorted(renamed)[::-1]}
        yield draw.case(name, waits_for=ordered, gone={shuffled[rank] for rank in gone})


_Satisfied = Callable[[str, list[bool]], bool]


def _satisfied(how: str, live: list[bool]) -> bool:
    return any(live) if how == "any" else all(live)


def _stuck_any_all(
    waits_for: _Waits,
    gone: Iterable[int],
    satisfied: _Satisfied = _satisfied,
    turns: int | None = None,
    begin_stuck: bool = True,
) -> list[int]:
    """Return the complement of the least fixpoint; arguments beyond two are for mistakes.

    Args:
        waits_for, gone: as in the exercise.
        satisfied: whether a wait is over, given its kind and which of its ranks are live.
        turns: how often all ranks are examined; until nothing changes if ``None``.
        begin_stuck: whether a waiting rank counts as stuck until it is freed.  If not, it
            counts as live until it is found stuck, which misses cycles.
    """
    left = {r: wait for r, wait in waits_for.items() if wait is not None and r not in gone}
    stuck = set(left) if begin_stuck else set()
    while turns is None or turns > 0:
        turns = None if turns is None else turns - 1
        now = {
            r
            for r, (how, peers) in left.items()
            if not satisfied(how, [p not in stuck and p not in gone for p in peers])
        }
        if now == stuck:
            break
        stuck = now
    return sorted(stuck)


def _mistaken(**how: Any) -> Callable[[Case], list[Any]]:
    return lambda c: [_stuck_any_all(c.waits_for, c.gone, **how)] * c.n


def _swept(order: Callable[[Iterable[int]], list[int]]) -> Callable[[Case], list[Any]]:
    """Make a ``gives``: the stuck ranks if each is examined only once, in this order."""

    def gives(c: Case) -> list[Any]:
        stuck = {r for r, wait in c.waits_for.items() if wait is not None and r not in c.gone}
        for r in order(r for r in c.waits_for if r in stuck):
            how, peers = c.waits_for[r]
            if _satisfied(how, [p not in stuck and p not in c.gone for p in peers]):
                stuck.remove(r)
        return [sorted(stuck)] * c.n

    return gives


stuck_ranks_any_all = Exercise(
    signature="stuck_ranks_any_all(waits_for: dict[int, tuple[str, list[int]] | None],"
    " gone: set[int]) -> list[int]",
    summary="ranks that can never go on, where waits are for any or all, and some have returned",
    inputs=_any_all,
    world_sizes=(1,),
    values=Values(lambda c: [_stuck_any_all(c.waits_for, c.gone)] * c.n),
    mistakes=(
        Mistake(
            "The ranks are right, their order is not: return sorted(...).",
            when=lambda e: any(
                isinstance(a, (list, tuple))
                and list(a) != _stuck_any_all(e.case.waits_for, e.case.gone) == sorted(a)
                for a in e.actual
            ),
        ),
        Mistake(
            "A rank that has returned posts nothing more, so it satisfies no wait. You treat the"
            " ranks in gone as if they were running.",
            gives=lambda c: (
                [_stuck_any_all({r: w for r, w in c.waits_for.items() if r not in c.gone}, set())]
                * c.n
            ),
        ),
        Mistake(
            "A rank that has returned is not stuck, it is done: leave the ranks in gone out of the"
            " list, also where waits_for has them.",
            when=lambda e: any(
                isinstance(a, (list, tuple)) and set(a) & e.case.gone for a in e.actual
            ),
        ),
        Mistake(
            'You treat every wait as AND. For "any" one rank that can go on is enough.',
            gives=_mistaken(satisfied=lambda how, live: all(live)),
        ),
        Mistake(
            'You treat every wait as OR. For "all" a single rank that can never go on is enough'
            " to be stuck.",
            gives=_mistaken(satisfied=lambda how, live: any(live)),
        ),
        Mistake(
            "You go through the ranks only once. A rank that is freed late may free others that"
            " you have looked at before: repeat until a whole pass changes nothing.",
            gives=(_mistaken(turns=1), _swept(sorted), _swept(list)),
        ),
        Mistake(
            "Cycles are missing: their members keep each other in the set of those that can go on."
            " Begin with the ranks that run, and let a rank in only when its wait is satisfied.",
            gives=_mistaken(begin_stuck=False),
        ),
        Mistake(
            "The list of ranks may be empty: any([]) is False, so such a rank is stuck, and"
            " all([]) is True, so such a rank goes on.",
            when=lambda e: e.case.name == "any of none, all of none",
        ),
        Mistake(
            "A rank that runs has None in waits_for, in place of a kind of wait and a list: check"
            " for that before you unpack it.",
            when=lambda e: e.says("cannot unpack non-iterable NoneType"),
        ),
        Mistake(
            "A rank that runs has None in waits_for, in place of a kind of wait and a list: check"
            " for that before you look into it.",
            when=lambda e: e.says("'NoneType' object is not subscriptable"),
        ),
        *_KEYS,
    ),
)
