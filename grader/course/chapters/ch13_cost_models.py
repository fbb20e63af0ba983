"""Chapter 13: how long an all-reduce takes, on paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from grader.course import costs
from grader.exercise.cases import Case, Draw, Kind
from grader.exercise.declaration import Evidence, Exercise, Mistake, Values
from headcount.core.verdict import Diagnosis

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


_DIVIDED_BY_ZERO = Mistake(
    "n may be 1, and alpha, beta and nbytes may be 0. n is the only thing that the formula may"
    " divide by.",
    when=lambda e: e.raised("ZeroDivisionError"),
)


ring_all_reduce_seconds = Exercise(
    signature="ring_all_reduce_seconds(n: int, nbytes: int, alpha: float, beta: float) -> float",
    summary="seconds of a ring all-reduce in the alpha-beta model",
    inputs=lambda draw: _worlds(draw, _WORLDS),
    world_sizes=(1,),
    values=Values(lambda c: [costs.ring_all_reduce_seconds(*c.arguments(0))], relative=_FORMULA),
    mistakes=(_DIVIDED_BY_ZERO,),
)


def _ends_on_powers_of_two_only(e: Evidence) -> bool:
    """Return whether a power of two has passed, and no other n of more than one rank ends."""
    wrong, right = [{one.case.columns["n"] for one in part} for part in (e.failed, e.passed)]
    return (
        e.diagnosis is Diagnosis.TIMEOUT
        and all(n.bit_count() > 1 for n in wrong)
        and any(n > 1 and n.bit_count() == 1 for n in right)
        and all(n.bit_count() == 1 for n in right)
    )


tree_all_reduce_seconds = Exercise(
    signature="tree_all_reduce_seconds(n: int, nbytes: int, alpha: float, beta: float) -> float",
    summary="seconds of a reduce and a broadcast on a binomial tree, in the alpha-beta model",
    inputs=lambda draw: _worlds(draw, (*_WORLDS, _POWER)),
    world_sizes=(1,),
    values=Values(lambda c: [costs.tree_all_reduce_seconds(*c.arguments(0))], relative=_FORMULA),
    mistakes=(
        _DIVIDED_BY_ZERO,
        Mistake(
            "The loop ends only where n is a power of two. If it doubles, it has to stop when it"
            " has reached n or passed it: while reached < n.",
            when=_ends_on_powers_of_two_only,
        ),
    ),
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
    ("6 ranks, about a byte", 6, 1e-9, 1e-9),
)


def _crossings(draw: Draw) -> Iterator[Case]:
    for name, n, alpha, beta in _CROSSINGS:
        x, y = _factors(draw, 2)
        yield draw.case(name, n=n, alpha=alpha * x, beta=beta * y)


crossover_bytes = Exercise(
    signature="crossover_bytes(n: int, alpha: float, beta: float) -> float",
    summary="the size from which the ring is no slower than the tree; 0 if always, inf if never",
    inputs=_crossings,
    world_sizes=(1,),
    values=Values(lambda c: [costs.crossover_bytes(*c.arguments(0))], relative=_FORMULA),
    mistakes=(
        Mistake(
            "alpha or beta may be 0, and n may be 1: ask for those cases before you divide. Which"
            " of the two algorithms is no slower there, at every size?",
            when=lambda e: e.raised("ZeroDivisionError"),
        ),
        Mistake(
            "Without a cost for bytes only the latencies count, and from 4 ranks on the ring has"
            " more of them at every size: it is never as fast, so the answer is math.inf.",
            when=lambda e: (
                e.case.columns["beta"] == 0 < e.case.columns["alpha"] and e.case.columns["n"] > 3
            ),
        ),
        Mistake(
            "Up to 3 ranks the ring takes no more steps than the tree: it is no slower at any"
            " size, so the answer is 0, even where the two cost the same.",
            when=lambda e: e.case.columns["n"] <= 3,
        ),
        Mistake(
            "Where a latency costs nothing, only the bytes count, and the ring has fewer of those:"
            " it is no slower at any size, so the answer is 0, even where bytes cost nothing"
            " either.",
            when=lambda e: e.case.columns["alpha"] == 0,
        ),
    ),
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


def _given(e: Evidence) -> tuple[float, float]:
    """Return the two numbers of an answer; of any other answer, two that no mistake gives."""
    value = e.actual[0]
    pair = isinstance(value, (list, tuple)) and len(value) == 2
    return tuple(value) if pair and all(isinstance(x, (float, int)) for x in value) else (1.0, 1.0)


def _nearly(e: Evidence) -> bool:
    """Return whether the answer is right to the few digits of single precision.

    Where sizes are large, nothing may be left of alpha.
    """
    (alpha, beta), given = costs.fit_alpha_beta(*e.case.arguments(0)), _given(e)
    # written this way, nan is never close
    if e.diagnosis is not Diagnosis.WRONG_VALUE or not abs(given[1] - beta) <= 0.01 * beta:
        return False
    return abs(given[0] - alpha) <= 0.05 * alpha or max(e.case.sizes) >= 10**8


fit_alpha_beta = Exercise(
    signature="fit_alpha_beta(sizes: list[int], seconds: list[float]) -> tuple[float, float]",
    summary="the alpha and beta, neither negative, with the least squares of alpha + beta·S − t",
    inputs=_times,
    world_sizes=(1,),
    values=Values(
        lambda c: [costs.fit_alpha_beta(*c.arguments(0))], magnitude=_fit_scale, relative=_FIT
    ),
    mistakes=(
        Mistake(
            "One of the two is nan or infinite, as after 0.0 / 0.0 in numpy and torch, or where a"
            " number grew beyond what its dtype holds. Look at what you divide by, and use"
            " float64.",
            when=lambda e: not all(map(math.isfinite, _given(e))),
        ),
        Mistake(
            "Nearly: a few digits are right. torch.tensor makes float32 of Python's numbers, which"
            " has 7 digits, and a difference of large sums loses most of them. Use"
            " dtype=torch.float64.",
            # a number that is rounded looks the same
            when=lambda e: e.written(r"torch|float32") and not e.written("float64") and _nearly(e),
        ),
        Mistake(
            "All times may be 0, and so may one of the sizes: divide by neither. And there may be"
            " no more than two points: what do you divide by then?",
            when=lambda e: e.raised("ZeroDivisionError"),
        ),
    ),
)
