"""Mistakes of chapter 13: what people make of measured times instead of the best fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from grader.core.verdict import Diagnosis
from grader.course import costs
from grader.course.cases import Case
from grader.course.chapters.cost_mistakes import wrong
from grader.course.exercise import Evidence, Mistake

__all__ = ["FIT"]


def _line(s: Sequence[float], t: Sequence[float]) -> tuple[float, float]:
    """The line that fits best, whatever the signs."""
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
    """The line with the least squares of relative errors."""
    u, v = [1 / b for b in t], [a / b for a, b in zip(s, t, strict=True)]
    uu, uv = sum(x * x for x in u), sum(x * y for x, y in zip(u, v, strict=True))
    vv, x, y = sum(y * y for y in v), sum(u), sum(v)
    det = uu * vv - uv * uv
    return (x * vv - y * uv) / det, (y * uu - x * uv) / det


def _mean_ratio(s: Sequence[float], t: Sequence[float]) -> tuple[float, float] | None:
    """A mistake that is made only where alpha is held at zero."""
    if _line(s, t)[0] >= 0:
        return None
    return 0.0, sum(b / a for a, b in zip(s, t, strict=True)) / len(s)


def _given(e: Evidence) -> tuple[float, float] | None:
    """The two numbers of an answer, if it is two numbers."""
    value = e.actual[0]
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    return (value[0], value[1]) if all(isinstance(x, (float, int)) for x in value) else None


def _nearly(e: Evidence) -> bool:
    """Whether the answer is right to a few digits, as those of single precision are.

    Where sizes are large, none may be left of alpha.
    """
    (alpha, beta), given = costs.fit_alpha_beta(*e.case.arguments(0)), _given(e)
    wrong_value = e.diagnosis is Diagnosis.WRONG_VALUE
    # said so, what is no number is near to nothing
    if not wrong_value or given is None or not abs(given[1] - beta) <= 0.01 * beta:
        return False
    return abs(given[0] - alpha) <= 0.05 * alpha or max(e.case.sizes) >= 10**8


def _scaled(by: float) -> Callable[[Sequence[int], Sequence[float]], tuple[float, float]]:
    def fit(s: Sequence[int], t: Sequence[float]) -> tuple[float, float]:
        alpha, beta = costs.fit_alpha_beta(s, t)
        return alpha, beta * by

    return fit


def _plain(formula: Callable[..., Any]) -> Callable[[Case], list[Any] | None]:
    """What a wrong formula gives, where the best line has no negative number to hold at zero."""
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
        " among those that have neither alpha nor beta below 0.",
        when=lambda e: min(_given(e) or (0, 0)) < 0,
    ),
    Mistake(
        "You set what was negative to zero, and left the other as it was. But that one was the best"
        " only together with the negative one. With one held at zero, fit the other again.",
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
        "That line has the least squares of *relative* errors. A good choice for a plot with"
        " logarithmic axes, but here the squares of the errors in seconds are asked for.",
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
