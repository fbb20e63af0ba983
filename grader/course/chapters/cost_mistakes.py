"""Mistakes of chapter 13: what people write instead of a cost, and the hint that fits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from grader.core.verdict import Diagnosis
from grader.course import costs
from grader.course.cases import Case
from grader.course.exercise import Mistake

__all__ = ["CROSSOVER", "RING", "TREE", "wrong"]


def wrong(formula: Callable[..., Any]) -> Callable[[Case], list[Any] | None]:
    """What a wrong formula gives, in a case in which it gives anything."""

    def gives(c: Case) -> list[Any] | None:
        try:
            value = formula(*c.arguments(0))
        except ZeroDivisionError:
            return None
        return None if value is None else [value]

    return gives


def _cost(formula: Callable[..., Any]) -> Callable[[Case], list[Any] | None]:
    """The same for a cost; silent where a rank is alone, which is often asked for first."""
    gives = wrong(formula)
    return lambda c: gives(c) if c.columns["n"] > 1 else None


_ZERO = Mistake(
    "That is what a group of one costs. The argument n says how many ranks there are; the group"
    " that your function runs in has nothing to do with it.",
    when=lambda e: e.calls("get_world_size") and e.actual[0] == 0 and e.case.columns["n"] > 1,
)

#: What an error proves of a formula for a cost.
_ALONE = (
    Mistake(
        "n may be 1, and alpha, beta and nbytes may be 0. The formula has to divide by nothing but"
        " n.",
        when=lambda e: e.says("ZeroDivisionError"),
    ),
    Mistake(
        "n may be 1, and then n − 1 is 0, which has no logarithm.",
        when=lambda e: (
            e.case.columns["n"] == 1 and (e.says("math domain") or e.says("positive input"))
        ),
    ),
)


def _in_other_units(cost: Callable[..., float]) -> tuple[Mistake, ...]:
    """The right cost in milliseconds, or in microseconds."""

    def times(factor: float) -> Callable[[Case], list[Any] | None]:
        return _cost(lambda n, s, a, b: factor * cost(n, s, a, b))

    return (
        Mistake("That is 1000 times as much: in milliseconds. Seconds are asked for.", times(1e3)),
        Mistake("That is 10⁶ times as much: in microseconds. Seconds are asked for.", times(1e6)),
    )


RING = (
    _ZERO,
    *_ALONE,
    *_in_other_units(costs.ring_all_reduce_seconds),
    Mistake(
        "You count 2n steps. A chunk that has visited n ranks has made n − 1 steps, so there"
        " are 2(n − 1), and none when a rank is alone.",
        gives=_cost(lambda n, s, a, b: 2 * n * (a + s / n * b)),
    ),
    Mistake(
        "That is one phase. The reduce-scatter takes n − 1 steps, and the all-gather as many"
        " again.",
        gives=_cost(lambda n, s, a, b: (n - 1) * (a + s / n * b)),
    ),
    Mistake(
        "That is the cost of the bytes alone. Each of the 2(n − 1) messages costs alpha as well.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * s / n * b),
    ),
    Mistake(
        "That is the latency alone. Each message also takes beta seconds for each of its bytes.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * a),
    ),
    Mistake(
        "Every step sends the whole tensor here. On the ring a step sends one chunk, nbytes / n"
        " bytes.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * (a + s * b)),
    ),
    Mistake(
        "The latency is counted once for all. The steps come one after the other, and each of"
        " the 2(n − 1) costs alpha.",
        gives=_cost(lambda n, s, a, b: a + 2 * (n - 1) / n * s * b),
    ),
    Mistake(
        "The latency is counted once for a phase. The steps of a phase come one after the"
        " other, and each of them costs alpha.",
        gives=_cost(lambda n, s, a, b: 2 * a + 2 * (n - 1) / n * s * b),
    ),
    Mistake(
        "Here every rank sends the tensor twice. It is a little less: 2(n − 1) chunks of"
        " nbytes / n bytes each. There are n chunks, one for each rank, and not n − 1.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * a + 2 * s * b),
    ),
    Mistake(
        "You multiply by 8. beta is in seconds per byte, and nbytes are bytes: there are no"
        " bits here.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * (a + 8 * s / n * b)),
    ),
    Mistake(
        "You divide by beta, as if it were bytes per second. It is seconds per byte: multiply.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * (a + s / n / b)),
    ),
    Mistake(
        "The chunk is rounded to whole bytes. The model knows no whole bytes: nbytes / n and"
        " not nbytes // n.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * (a + s // n * b)),
    ),
    Mistake(
        "The chunk is rounded up to whole bytes. The model knows no whole bytes: nbytes / n.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * (a + -(-s // n) * b)),
    ),
    Mistake(
        "That is twice as much. There are two phases of n − 1 steps, and a step costs one message:"
        " a rank sends and receives at the same time.",
        gives=_cost(lambda n, s, a, b: 4 * (n - 1) * (a + s / n * b)),
    ),
    Mistake(
        "That is the sum over all ranks. They work at the same time: the clock runs once.",
        gives=_cost(lambda n, s, a, b: 2 * n * (n - 1) * (a + s / n * b)),
    ),
)


def _tree(levels: Callable[[int], float]) -> Callable[..., float]:
    """The tree's cost with another number of levels."""
    return lambda n, s, a, b: 2 * levels(n) * (a + s * b)


TREE = (
    _ZERO,
    *_ALONE,
    *_in_other_units(costs.tree_all_reduce_seconds),
    Mistake(
        "A loop that doubles has to stop when it has reached n or passed it: while reached < n."
        " Not every n is a power of two.",
        when=lambda e: (
            e.diagnosis is Diagnosis.TIMEOUT
            and e.case.columns["n"].bit_count() > 1
            and e.written(r"while \w+ != n\b|while n != \w+")
        ),
    ),
    Mistake(
        "That is one way only. The reduce goes up the tree, and the broadcast comes down again.",
        gives=_cost(lambda n, s, a, b: costs.tree_levels(n) * (a + s * b)),
    ),
    Mistake(
        "There are no parts of a round: 5 ranks take 3 rounds and not 2.32. Round log₂ n up.",
        gives=_cost(_tree(math.log2)),
    ),
    Mistake(
        "log₂ n is rounded down. Two rounds reach 4 ranks, and the fifth takes one more: round up.",
        gives=_cost(_tree(lambda n: n.bit_length() - 1)),
    ),
    Mistake(
        "math.log(n, 2) is log(n) / log(2), one rounded number by another, and for this n the"
        " result lies a hair above a whole number; rounded up, it is one too many. Use"
        " math.log2(n), or (n - 1).bit_length().",
        gives=_cost(_tree(lambda n: math.ceil(math.log(n, 2)))),
    ),
    Mistake(
        "One round too many where n is a power of two: 4 ranks take 2 rounds and not 3. Neither"
        " n.bit_length() nor int(log₂ n) + 1 is ⌈log₂ n⌉ there; (n - 1).bit_length() is.",
        gives=_cost(_tree(int.bit_length)),
    ),
    Mistake(
        "That is the natural logarithm. In each round the number of ranks doubles: the base"
        " is 2, as in math.log2.",
        gives=_cost(_tree(lambda n: math.ceil(math.log(n)))),
    ),
    Mistake(
        "That is what a root takes that sends to one rank after another: 2(n − 1) messages. On a"
        " tree, every rank that has the tensor helps to send it: 2⌈log₂ n⌉.",
        gives=_cost(_tree(lambda n: n - 1)),
    ),
    Mistake(
        "A round of the tree sends the whole tensor. Only the ring cuts it into n chunks.",
        gives=_cost(lambda n, s, a, b: 2 * costs.tree_levels(n) * (a + s / n * b)),
    ),
    Mistake(
        "Here messages get shorter from round to round. That is another, better algorithm; in"
        " this one every message is the whole tensor.",
        gives=_cost(lambda n, s, a, b: 2 * costs.tree_levels(n) * a + 2 * (n - 1) / n * s * b),
    ),
    Mistake(
        "That is the cost of the bytes alone. Each round costs alpha as well.",
        gives=_cost(lambda n, s, a, b: 2 * costs.tree_levels(n) * s * b),
    ),
    Mistake(
        "That is the latency alone. Each message also takes beta seconds for each of its bytes.",
        gives=_cost(lambda n, s, a, b: 2 * costs.tree_levels(n) * a),
    ),
    Mistake(
        "The latency is counted once for all. The rounds come one after the other, and each of"
        " them costs alpha.",
        gives=_cost(lambda n, s, a, b: a + 2 * costs.tree_levels(n) * s * b),
    ),
    Mistake(
        "You multiply by 8. beta is in seconds per byte, and nbytes are bytes: there are no"
        " bits here.",
        gives=_cost(lambda n, s, a, b: 2 * costs.tree_levels(n) * (a + 8 * s * b)),
    ),
    Mistake(
        "You divide by beta, as if it were bytes per second. It is seconds per byte: multiply.",
        gives=_cost(lambda n, s, a, b: 2 * costs.tree_levels(n) * (a + s / b)),
    ),
)


def _ring(n: int, a: float, b: float, levels: float, part: float) -> float:
    """Where the ring, sending ``part`` of the tensor, meets a tree of so many levels."""
    return 2 * (n - 1 - levels) * a / ((2 * levels - part) * b)


def _meets(levels: Callable[[int], float], part: Callable[[int], float]) -> Callable[..., float]:
    return lambda n, a, b: _ring(n, a, b, levels(n), part(n))


def _sent(n: int) -> float:
    return 2 * (n - 1) / n


def _crossing(formula: Callable[..., float]) -> Callable[[Case], list[Any] | None]:
    """Where a wrong formula has the two meet; it is silent where no formula is needed.

    Most people ask for those cases first, and answer them right.
    """
    gives = wrong(formula)

    def away(c: Case) -> list[Any] | None:
        n, alpha, beta = c.arguments(0)
        return gives(c) if n > 3 and alpha and beta else None

    return away


CROSSOVER = (
    Mistake(
        "alpha or beta may be 0, and n may be 1: ask for those cases before you divide. Which of"
        " the two algorithms is no slower there, at every size?",
        when=lambda e: e.says("ZeroDivisionError"),
    ),
    Mistake(
        "Without a cost for bytes only the latencies count, and from 4 ranks on the ring has more"
        " of them at every size: it is never as fast, so the answer is math.inf.",
        when=lambda e: (
            e.case.columns["beta"] == 0 and costs.crossover_bytes(*e.case.arguments(0)) > 0
        ),
    ),
    Mistake(
        "Up to 3 ranks the ring takes no more steps than the tree: at every size it is no slower,"
        " so the answer is 0, even where the two cost the same.",
        when=lambda e: e.case.columns["n"] <= 3,
    ),
    Mistake(
        "Where a latency costs nothing only the bytes count, and of those the ring has fewer: at"
        " every size it is no slower, so the answer is 0, even where bytes cost nothing either.",
        when=lambda e: e.case.columns["alpha"] == 0,
    ),
    Mistake(
        "That is where one message has as much latency as transfer. What is asked for is where two"
        " whole algorithms cost the same: set the two formulas equal, and solve for the size.",
        gives=_crossing(lambda n, a, b: a / b),
    ),
    Mistake(
        "alpha and beta are swapped: a larger latency speaks against the ring, so it belongs on"
        " top.",
        gives=_crossing(lambda n, a, b: _ring(n, b, a, costs.tree_levels(n), _sent(n))),
    ),
    Mistake(
        "That is right if a rank on the ring sends the tensor twice. It sends 2(n − 1)/n of it.",
        gives=_crossing(_meets(costs.tree_levels, lambda n: 2)),
    ),
    Mistake(
        "The bytes of the ring are missing. They are fewer than the tree's, but they do count:"
        " 2(n − 1)/n of the tensor.",
        gives=_crossing(_meets(costs.tree_levels, lambda n: 0)),
    ),
    Mistake(
        "Two phases of the ring are compared with one way of the tree: it goes up and comes down"
        " again, 2⌈log₂ n⌉ messages.",
        gives=_crossing(_meets(lambda n: costs.tree_levels(n) / 2, _sent)),
    ),
    Mistake(
        "One phase of the ring is compared with both ways of the tree: it has 2(n − 1) steps.",
        gives=_crossing(
            lambda n, a, b: (
                (n - 1 - 2 * costs.tree_levels(n))
                * a
                / ((2 * costs.tree_levels(n) - (n - 1) / n) * b)
            )
        ),
    ),
    Mistake(
        "That is the size of a chunk there. The size of the whole tensor is asked for, n times"
        " as much.",
        gives=_crossing(lambda n, a, b: _ring(n, a, b, costs.tree_levels(n), _sent(n)) / n),
    ),
    Mistake(
        "That is an eighth of it. beta is in seconds per byte, and bytes are asked for: there are"
        " no bits here.",
        gives=_crossing(lambda n, a, b: _ring(n, a, b, costs.tree_levels(n), _sent(n)) / 8),
    ),
    Mistake(
        "The tree's rounds have to be rounded up: ⌈log₂ n⌉, since there are no parts of a round.",
        gives=_crossing(_meets(math.log2, _sent)),
    ),
    Mistake(
        "The tree's rounds are rounded down: 5 ranks take 3.",
        gives=_crossing(_meets(lambda n: n.bit_length() - 1, _sent)),
    ),
    Mistake(
        "math.log(n, 2) is log(n) / log(2), one rounded number by another, and for this n the"
        " result lies a hair above a whole number; rounded up, it is one too many. Use"
        " math.log2(n), or (n - 1).bit_length().",
        gives=_crossing(_meets(lambda n: math.ceil(math.log(n, 2)), _sent)),
    ),
    Mistake(
        "One round too many where n is a power of two: 8 ranks take 3 and not 4. Neither"
        " n.bit_length() nor int(log₂ n) + 1 is ⌈log₂ n⌉ there; (n - 1).bit_length() is.",
        gives=_crossing(_meets(int.bit_length, _sent)),
    ),
)
