"""Chapter 13: how long an all-reduce takes, on paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course import costs
from grader.course.cases import Case, Draw, Kind
from grader.course.exercise import Evidence, Exercise, Mistake, Values

# Mistakes of chapter 13: what people write instead of a cost, and the hint that fits. ----


def wrong(formula: Callable[..., Any]) -> Callable[[Case], list[Any] | None]:
    """Make a ``gives``: the results of a wrong formula, ``None`` where it gives nothing."""

    def gives(c: Case) -> list[Any] | None:
        try:
            value = formula(*c.arguments(0))
        except ZeroDivisionError:
            return None
        return None if value is None else [value]

    return gives


def _cost(formula: Callable[..., Any]) -> Callable[[Case], list[Any] | None]:
    """Make a ``gives``: the results of a wrong cost; ``None`` for one rank, often treated apart."""
    gives = wrong(formula)
    return lambda c: gives(c) if c.columns["n"] > 1 else None


_ZERO = Mistake(
    "That is what a group of one costs. The argument n says how many ranks there are; the group"
    " that your function runs in has nothing to do with it.",
    when=lambda e: e.calls("get_world_size") and e.actual[0] == 0 and e.case.columns["n"] > 1,
)

#: Mistakes in the formula for a cost that an exception proves.
_ALONE = (
    Mistake(
        "n may be 1, and alpha, beta and nbytes may be 0. n is the only thing that the formula may"
        " divide by.",
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
    """Return the mistakes of giving the right cost in milliseconds or in microseconds."""

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
        "That is the cost of the bytes alone. Each of the 2(n − 1) messages costs alpha, too.",
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
        "The latency is counted only once. The steps come one after the other, and each of the"
        " 2(n − 1) costs alpha.",
        gives=_cost(lambda n, s, a, b: a + 2 * (n - 1) / n * s * b),
    ),
    Mistake(
        "The latency is counted once for each phase. The steps of a phase come one after the"
        " other, and each of them costs alpha.",
        gives=_cost(lambda n, s, a, b: 2 * a + 2 * (n - 1) / n * s * b),
    ),
    Mistake(
        "Here every rank sends the tensor twice. It sends a little less: 2(n − 1) chunks of"
        " nbytes / n bytes each. There are n chunks, one for each rank, not n − 1.",
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
        "The chunk is rounded to whole bytes. The model does not round: nbytes / n, not"
        " nbytes // n.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * (a + s // n * b)),
    ),
    Mistake(
        "The chunk is rounded up to whole bytes. The model does not round: nbytes / n.",
        gives=_cost(lambda n, s, a, b: 2 * (n - 1) * (a + -(-s // n) * b)),
    ),
    Mistake(
        "That is twice as much. There are two phases of n − 1 steps, and a step costs one message:"
        " a rank sends and receives at the same time.",
        gives=_cost(lambda n, s, a, b: 4 * (n - 1) * (a + s / n * b)),
    ),
    Mistake(
        "That is the sum over all ranks. They work at the same time: their seconds do not add up.",
        gives=_cost(lambda n, s, a, b: 2 * n * (n - 1) * (a + s / n * b)),
    ),
)


def _tree(levels: Callable[[int], float]) -> Callable[..., float]:
    """Return the tree's cost with another number of levels."""
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
        "Rounds are whole: 5 ranks take 3 of them, not 2.32. Round log₂ n up.",
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
        "That is what a root takes if it sends to one rank after another: 2(n − 1) messages. On a"
        " tree, every rank that has the tensor helps to send it: 2⌈log₂ n⌉.",
        gives=_cost(_tree(lambda n: n - 1)),
    ),
    Mistake(
        "Each message of the tree is the whole tensor. Only the ring cuts it into n chunks.",
        gives=_cost(lambda n, s, a, b: 2 * costs.tree_levels(n) * (a + s / n * b)),
    ),
    Mistake(
        "Here the messages get shorter from round to round. That is another, better algorithm; in"
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
        "The latency is counted only once. The rounds come one after the other, and each of them"
        " costs alpha.",
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
    """Return where a ring that sends ``part`` of the tensor costs as much as such a tree."""
    return 2 * (n - 1 - levels) * a / ((2 * levels - part) * b)


def _meets(levels: Callable[[int], float], part: Callable[[int], float]) -> Callable[..., float]:
    return lambda n, a, b: _ring(n, a, b, levels(n), part(n))


def _sent(n: int) -> float:
    return 2 * (n - 1) / n


def _crossing(formula: Callable[..., float]) -> Callable[[Case], list[Any] | None]:
    """Make a ``gives``: crossover sizes by a wrong formula, ``None`` where none is needed.

    Most programs handle those cases first, and rightly.
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
        "Up to 3 ranks the ring takes no more steps than the tree: it is no slower at any size, so"
        " the answer is 0, even where the two cost the same.",
        when=lambda e: e.case.columns["n"] <= 3,
    ),
    Mistake(
        "Where a latency costs nothing, only the bytes count, and the ring has fewer of those: it"
        " is no slower at any size, so the answer is 0, even where bytes cost nothing either.",
        when=lambda e: e.case.columns["alpha"] == 0,
    ),
    Mistake(
        "That is the size at which one message has as much latency as transfer. Find the size at"
        " which two whole algorithms cost the same: set the two formulas equal, and solve for it.",
        gives=_crossing(lambda n, a, b: a / b),
    ),
    Mistake(
        "alpha and beta are swapped: the higher the latency, the larger the size must be, so alpha"
        " belongs in the numerator.",
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
        "You compare two phases of the ring with one way of the tree, which goes up and comes down"
        " again: 2⌈log₂ n⌉ messages.",
        gives=_crossing(_meets(lambda n: costs.tree_levels(n) / 2, _sent)),
    ),
    Mistake(
        "You compare one phase of the ring with both ways of the tree: a ring has 2(n − 1) steps.",
        gives=_crossing(
            lambda n, a, b: (
                (n - 1 - 2 * costs.tree_levels(n))
                * a
                / ((2 * costs.tree_levels(n) - (n - 1) / n) * b)
            )
        ),
    ),
    Mistake(
        "That is the size of a chunk. Return the size of the whole tensor, n times as much.",
        gives=_crossing(lambda n, a, b: _ring(n, a, b, costs.tree_levels(n), _sent(n)) / n),
    ),
    Mistake(
        "That is an eighth of it. beta is in seconds per byte, and the answer is in bytes: there"
        " are no bits here.",
        gives=_crossing(lambda n, a, b: _ring(n, a, b, costs.tree_levels(n), _sent(n)) / 8),
    ),
    Mistake(
        "The tree's rounds have to be rounded up: ⌈log₂ n⌉, since rounds are whole.",
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


# Mistakes of chapter 13: what people make of measured times instead of the best fit. ----


def _line(s: Sequence[float], t: Sequence[float]) -> tuple[float, float]:
    """Return the line that fits best, of any sign."""
    x, y = sum(s) / len(s), sum(t) / len(t)
    slope = sum((a - x) * (b - y) for a, b in zip(s, t, strict=True))
    slope /= sum((a - x) ** 2 for a in s)
    return y - slope * x, slope


def _clamped(s: Sequence[float], t: Sequence[float]) -> tuple[float, float]:
    alpha, beta = _line(s, t)
    return max(alpha, 0.0), max(beta, 0.0)


def _through_zero(s: Sequence[float], t: Sequence[float]) -> tuple[float, float]:
    return 0.0, sum(a * b for a, b in zip(s, t, strict=True)) / sum(a * a for a in s)


def _relative_line(s: Sequence[float], t: Sequence[float]) -> tuple[float, float]:
    """Return the line with the least squares of relative errors."""
    u, v = [1 / b for b in t], [a / b for a, b in zip(s, t, strict=True)]
    uu, uv = sum(x * x for x in u), sum(x * y for x, y in zip(u, v, strict=True))
    vv, x, y = sum(y * y for y in v), sum(u), sum(v)
    det = uu * vv - uv * uv
    return (x * vv - y * uv) / det, (y * uu - x * uv) / det


def _mean_ratio(s: Sequence[float], t: Sequence[float]) -> tuple[float, float] | None:
    """Return the mean of t/s, in cases where alpha is held at zero; ``None`` elsewhere."""
    if _line(s, t)[0] >= 0:
        return None
    return 0.0, sum(b / a for a, b in zip(s, t, strict=True)) / len(s)


def _given(e: Evidence) -> tuple[float, float] | None:
    """Return the two numbers of an answer, or ``None`` if it is not two numbers."""
    value = e.actual[0]
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    return (value[0], value[1]) if all(isinstance(x, (float, int)) for x in value) else None


def _nearly(e: Evidence) -> bool:
    """Return whether the answer is right to the few digits of single precision.

    Where sizes are large, nothing may be left of alpha.
    """
    (alpha, beta), given = costs.fit_alpha_beta(*e.case.arguments(0)), _given(e)
    wrong_value = e.diagnosis is Diagnosis.WRONG_VALUE
    # written this way, nan is never close
    if not wrong_value or given is None or not abs(given[1] - beta) <= 0.01 * beta:
        return False
    return abs(given[0] - alpha) <= 0.05 * alpha or max(e.case.sizes) >= 10**8


def _scaled(by: float) -> Callable[[Sequence[int], Sequence[float]], tuple[float, float]]:
    def fit(s: Sequence[int], t: Sequence[float]) -> tuple[float, float]:
        alpha, beta = costs.fit_alpha_beta(s, t)
        return alpha, beta * by

    return fit


def _plain(formula: Callable[..., Any]) -> Callable[[Case], list[Any] | None]:
    """Make a ``gives``: the results of a formula where the best line has no negative number."""
    gives = wrong(formula)
    return lambda c: gives(c) if min(_line(*c.arguments(0))) >= 0 else None


FIT = (
    Mistake(
        "The other way round: alpha first, then beta.",
        gives=_plain(lambda s, t: costs.fit_alpha_beta(s, t)[::-1]),
    ),
    Mistake(
        "The second number should be seconds per byte. You return bytes per second, one divided"
        " by it.",
        gives=_plain(
            lambda s, t: (costs.fit_alpha_beta(s, t)[0], 1 / costs.fit_alpha_beta(s, t)[1])
        ),
    ),
    *(
        Mistake(
            f"Your beta is {what}. Sizes are in bytes, and beta is in seconds per byte: there are"
            " no bits here.",
            gives=_plain(_scaled(by)),
        )
        for by, what in ((1 / 8, "an eighth of what it should be"), (8, "8 times too large"))
    ),
    Mistake(
        "One of the two is nan or infinite, as after 0.0 / 0.0 in numpy and torch, or where a"
        " number grew beyond what its dtype holds. Look at what you divide by, and use float64.",
        when=lambda e: not all(map(isfinite, _given(e) or (0, 0))),
    ),
    Mistake(
        "One of the two is negative. No message takes less than no time: look for the best line"
        " among those with neither alpha nor beta below 0.",
        when=lambda e: min(_given(e) or (0, 0)) < 0,
    ),
    Mistake(
        "You set the negative number to zero and left the other as it was. But the other was the"
        " best only together with the negative one. With one held at zero, fit the other again.",
        gives=wrong(_clamped),
    ),
    Mistake(
        "Both are zero here. Only one had to be held at zero, if any; fit the other again.",
        when=lambda e: _given(e) == (0, 0),
    ),
    Mistake(
        "With alpha at zero, beta is not the mean of t / S. The least squares of t − beta · S are"
        " at sum(S · t) / sum(S · S).",
        gives=wrong(_mean_ratio),
    ),
    Mistake(
        "That is a line through zero: alpha is left out. Fit both numbers, and hold alpha at zero"
        " only where it would be negative.",
        gives=wrong(_through_zero),
    ),
    Mistake(
        "That is the line through the first and the last point. All points count: least squares.",
        gives=_plain(
            lambda s, t: (
                t[0] - s[0] * (t[-1] - t[0]) / (s[-1] - s[0]),
                (t[-1] - t[0]) / (s[-1] - s[0]),
            )
        ),
    ),
    Mistake(
        "That line has the least squares of *relative* errors. It is a good choice for a plot with"
        " logarithmic axes, but here the errors count in seconds.",
        gives=_plain(_relative_line),
    ),
    Mistake(
        "Nearly: a few digits are right. torch.tensor makes float32 of Python's numbers, which has"
        " 7 digits, and a difference of large sums loses most of them. Use dtype=torch.float64.",
        when=lambda e: e.written(r"torch|float32") and not e.written("float64") and _nearly(e),
    ),
    Mistake(
        "All times may be 0, and so may one of the sizes: divide by neither.",
        when=lambda e: e.says("ZeroDivisionError"),
    ),
)

# Formulas and fits. ---------------------------------------------------------------

#: Relative error for numbers of a formula, which may be evaluated in any order.
_FORMULA = 1e-9

#: Relative error for a fit, which takes differences of large, rounded sums.
_FIT = 1e-6


def _factors(draw: Draw, count: int) -> list[float]:
    """Draw random numbers from 0.5 to 1.5."""
    return [abs(x) for x in draw.factors(Kind(torch.float64, (count,))).tolist()]


#: Name, ranks, bytes, α in seconds, β in seconds per byte; the last three are varied
#: a little.  The hint depends on the first cases: in them latency and bytes both count,
#: and no two mistakes give the same.
_WORLDS: tuple[tuple[str, int, float, float, float], ...] = (
    ("16 ranks, about a megabyte", 16, 1e6, 1e-4, 1e-9),
    ("5 ranks, about ten megabytes", 5, 1e7, 1e-5, 1e-9),
    ("8 ranks, a few bytes", 8, 20, 1e-6, 1e-8),
    ("2 ranks", 2, 1e5, 1e-5, 1e-10),
    ("3 ranks", 3, 1e5, 1e-5, 1e-10),
    ("1 rank", 1, 1e6, 1e-5, 1e-9),
    ("6 ranks, no bytes", 6, 0, 1e-5, 1e-9),
    ("7 ranks, no latency", 7, 1e6, 0, 1e-9),
    ("4 ranks, bytes cost nothing", 4, 1e6, 1e-5, 0),
    ("1000 ranks, about a gigabyte, a slow network", 1000, 1e9, 1e-3, 1e-7),
)

#: math.log(2**29, 2) is larger than 29.
_POWER = ("2²⁹ ranks", 2**29, 1e6, 1e-5, 1e-9)


def _worlds(draw: Draw, worlds: Sequence[tuple[str, int, float, float, float]]) -> Iterator[Case]:
    for name, n, nbytes, alpha, beta in worlds:
        x, y, z = _factors(draw, 3)
        # not a multiple of n, so that a rounded size of a chunk is visible
        size = int(nbytes * x) // n * n + n // 2 if nbytes else 0
        yield draw.case(name, n=n, nbytes=size, alpha=alpha * y, beta=beta * z)


_NOTHING_IS_SENT = (
    "Nothing is sent here, and nothing is measured: what is asked for follows from the arguments."
)

_SECONDS_ADVICE = {
    Diagnosis.WRONG_TYPE: "Return one number, the seconds, as a Python float; .item() makes one"
    " of a tensor.",
    Diagnosis.FORBIDDEN_CALL: _NOTHING_IS_SENT,
}


ring_all_reduce_seconds = Exercise(
    signature="ring_all_reduce_seconds(n: int, nbytes: int, alpha: float, beta: float) -> float",
    summary="seconds of a ring all-reduce in the alpha-beta model",
    inputs=lambda draw: _worlds(draw, _WORLDS),
    world_sizes=(1,),
    values=Values(lambda c: [costs.ring_all_reduce_seconds(*c.arguments(0))], relative=_FORMULA),
    mistakes=RING,
)


tree_all_reduce_seconds = Exercise(
    signature="tree_all_reduce_seconds(n: int, nbytes: int, alpha: float, beta: float) -> float",
    summary="seconds of a reduce and a broadcast on a binomial tree, in the alpha-beta model",
    inputs=lambda draw: _worlds(draw, (*_WORLDS, _POWER)),
    world_sizes=(1,),
    values=Values(lambda c: [costs.tree_all_reduce_seconds(*c.arguments(0))], relative=_FORMULA),
    mistakes=TREE,
)


#: Name, ranks, α and β of cases that ask from which size on the ring is no slower.
_CROSSINGS: tuple[tuple[str, int, float, float], ...] = (
    ("10 ranks", 10, 1e-5, 1e-9),
    ("5 ranks", 5, 1e-4, 1e-9),
    ("4 ranks", 4, 1e-5, 1e-10),
    ("1000 ranks", 1000, 1e-3, 1e-8),
    _POWER[:2] + _POWER[3:],
    ("3 ranks", 3, 1e-5, 1e-9),
    ("2 ranks", 2, 1e-5, 1e-9),
    ("1 rank", 1, 1e-5, 1e-9),
    ("8 ranks, no latency", 8, 0, 1e-9),
    ("8 ranks, bytes cost nothing", 8, 1e-5, 0),
    ("3 ranks, bytes cost nothing", 3, 1e-5, 0),
    ("8 ranks, nothing costs anything", 8, 0, 0),
)


def _crossings(draw: Draw) -> Iterator[Case]:
    for name, n, alpha, beta in _CROSSINGS:
        x, y = _factors(draw, 2)
        yield draw.case(name, n=n, alpha=alpha * x, beta=beta * y)


def _one_byte(c: Case) -> list[float | None]:
    """Return the scale of the tolerance; it allows one byte, so that whole bytes are right, too."""
    size = costs.crossover_bytes(*c.arguments(0))
    return [max(size, 1 / _FORMULA) if size else None]


crossover_bytes = Exercise(
    signature="crossover_bytes(n: int, alpha: float, beta: float) -> float",
    summary="the size from which the ring is no slower than the tree; 0 if always, inf if never",
    inputs=_crossings,
    world_sizes=(1,),
    values=Values(
        lambda c: [costs.crossover_bytes(*c.arguments(0))], magnitude=_one_byte, relative=_FORMULA
    ),
    mistakes=CROSSOVER,
)


_KB = 1024


def _times(draw: Draw) -> Iterator[Case]:
    """Draw sizes and seconds; the shape of the seconds decides which of α and β must be 0."""
    a, b = _factors(draw, 2)
    alpha, beta = 1e-5 * a, 1e-9 * b

    def case(name: str, sizes: list[int], seconds: list[float], share: float = 0.0) -> Case:
        noise = [1 + share * (factor - 1) for factor in _factors(draw, len(sizes))]
        noisy = [time * factor for time, factor in zip(seconds, noise, strict=True)]
        return draw.case(name, sizes=sizes, seconds=noisy)

    def exact(sizes: list[int]) -> list[float]:
        return [alpha + beta * size for size in sizes]

    steps = [_KB << k for k in range(6)]
    even = [16 * _KB * k for k in range(1, 7)]
    yield case("with noise", steps, exact(steps), 0.1)
    yield case("times on a line", steps, exact(steps))
    curved = [beta * size * size / even[-1] for size in even]
    yield case("times that curve upwards", even, curved, 0.1)
    falling = [alpha * (1.6 - 0.2 * k) for k in range(6)]
    yield case("times that fall", even, falling, 0.05)
    yield case("two sizes", even[1:3], exact(even[1:3]))
    mixed = [_KB, 4 * _KB, 0, 4 * _KB, 2 * _KB]
    yield case("sizes in any order, some twice, one 0", mixed, exact(mixed), 0.1)
    wide = [1, 10**3, 10**6, 10**9]
    yield case("up to a gigabyte", wide, exact(wide))
    yield case("no time at all", steps[:3], [0.0] * 3)


def _fit_scale(c: Case) -> list[tuple[float, float]]:
    """Return the fit; where one of its numbers is 0, what would make up the shortest time."""
    alpha, beta = costs.fit_alpha_beta(*c.arguments(0))
    return [(alpha or min(c.seconds), beta or min(c.seconds) / max(c.sizes))]


fit_alpha_beta = Exercise(
    signature="fit_alpha_beta(sizes: list[int], seconds: list[float]) -> tuple[float, float]",
    summary="the alpha and beta, neither negative, with the least squares of alpha + beta·S − t",
    inputs=_times,
    world_sizes=(1,),
    values=Values(
        lambda c: [costs.fit_alpha_beta(*c.arguments(0))], magnitude=_fit_scale, relative=_FIT
    ),
    mistakes=FIT,
)
