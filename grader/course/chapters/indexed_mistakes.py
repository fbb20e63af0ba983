"""Mistakes that are often made in ``scatter_reduce_1d``, and what they give.

Runs in the judge alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case
from grader.course.chapters.indexed import counts, named, reduced
from grader.course.exercise import Evidence, Mistake

__all__ = ["MISTAKES"]


def _alone(
    wrong: Callable[[Case], torch.Tensor | None],
) -> Callable[[Case], list[torch.Tensor] | None]:
    """The same wrong tensor on every rank; numbers that behave in ways of their own say nothing."""

    def gives(c: Case) -> list[torch.Tensor] | None:
        odd = c.name.endswith(("with nan and inf", "large numbers"))
        found = None if odd else wrong(c)
        return None if found is None else [found] * c.n

    return gives


_STEPS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add,
    "prod": torch.mul,
    "amax": torch.maximum,
    "amin": torch.minimum,
    "mean": torch.add,
}


def _last_wins(c: Case) -> torch.Tensor | None:
    """What ``out[index] += src`` gives: each step starts from the same old value."""
    if c.input.dtype.is_floating_point or c.reduce == "mean":
        return None
    out: torch.Tensor = c.input.clone()
    for i, value in zip(c.index, c.src, strict=False):
        out[i] = _STEPS[c.reduce](c.input[i], value) if c.include_self else value
    return out


def _divided(
    c: Case, count: torch.Tensor, rounding: str | None = "floor", own: bool | None = None
) -> torch.Tensor | None:
    """The mean if sums were divided in another way."""
    if c.reduce != "mean" or c.input.dtype.is_floating_point:
        return None
    total = reduced(c, reduce="sum", include_self=c.include_self if own is None else own)
    mean = torch.div(total, count.clamp(min=1), rounding_mode=rounding).round()
    return torch.where(named(c), mean, c.input).to(c.input.dtype)


def _cut(c: Case) -> torch.Tensor | None:
    """A mean of integers that is cut towards zero."""
    return _divided(c, counts(c, c.include_self), "trunc")


def _to_nearest(c: Case) -> torch.Tensor | None:
    """A mean of integers that is rounded to the nearest."""
    return _divided(c, counts(c, c.include_self), None)


def _floored(e: Evidence) -> bool:
    """Whether a mean of floating-point numbers is rounded down like one of integers."""
    c = e.case
    if e.diagnosis is not Diagnosis.WRONG_VALUE or c.reduce != "mean":
        return False
    whole = reduced(c).floor()[named(c)]
    return c.input.dtype.is_floating_point and torch.equal(e.actual[0][named(c)], whole)


def _exchanged(c: Case) -> torch.Tensor | None:
    """The minimum for the maximum, and the other way round."""
    other = {"amax": "amin", "amin": "amax"}.get(c.reduce)
    return reduced(c, reduce=other) if other else None


def _bounded_by(c: Case, start: float, *asked: str) -> torch.Tensor | None:
    """One of the reductions ``asked``, if it starts at a number of its own."""
    if c.input.dtype.is_complex or c.reduce not in asked:
        return None
    right = reduced(c)
    other = _STEPS[c.reduce](right, torch.full_like(right, start))
    return torch.where(named(c), other, right)


def _elsewhere(e: Evidence) -> bool:
    """Whether the answer is right where index points, and wrong where it does not."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    actual, right, here = e.actual[0], reduced(e.case), named(e.case)
    wide = torch.complex128  # holds all there is
    close = torch.allclose(actual[here].to(wide), right[here].to(wide), rtol=0.02)
    return close and not torch.equal(actual[~here], right[~here])


def _loses_nan(e: Evidence) -> bool:
    """Whether a number stands where nan should."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    return bool((reduced(e.case).isnan() & ~e.actual[0].isnan()).any())


def _reads_at_index(e: Evidence) -> bool:
    """Whether numbers of src were fetched from where index points, as a gather does."""
    if e.diagnosis is not Diagnosis.WRONG_VALUE:
        return False
    c = e.case
    fetched = c.src[c.index[: len(c.input)]]
    wrong = (fetched, _STEPS[c.reduce](c.input, fetched))
    return any(torch.equal(e.actual[0], one) for one in wrong)


def _divided_to_float(e: Evidence) -> bool:
    """Whether a mean of integers is none, where their sum was an integer."""
    c = e.case
    return (
        e.diagnosis is Diagnosis.WRONG_DTYPE
        and c.reduce == "mean"
        and not c.input.dtype.is_floating_point
        and e.actual[0].dtype.is_floating_point
        and any(one.case.reduce == "sum" for one in e.passed)
    )


def _fails_on_one_dtype(e: Evidence) -> bool:
    """Whether an exception comes only with a dtype of its own, for a reduction that works else."""
    c = e.case
    same = [one for one in e.judged if one.case.reduce == c.reduce and len(one.case.index)]
    here = [one for one in same if one.case.input.dtype == c.input.dtype]
    return (
        e.diagnosis is Diagnosis.EXCEPTION
        and not any(one.passed for one in here)
        and any(one.passed for one in same)
    )


MISTAKES = (
    Mistake(
        "Where index names a place twice, the last one wins. Each number is combined with the old"
        " value of that place, as in out[index] += src, which reads all of them before it writes"
        " any: combine with what the numbers before it have left.",
        gives=_alone(_last_wins),
    ),
    Mistake(
        "With include_self=False, what input has at a place that index names does not count:"
        " the first number of src replaces it.",
        gives=_alone(
            lambda c: None if c.include_self else reduced(c, include_self=True),
        ),
    ),
    Mistake(
        "With include_self=True, what input has at a place counts as one more number.",
        gives=_alone(lambda c: reduced(c, include_self=False) if c.include_self else None),
    ),
    Mistake(
        "A mean is divided by how many numbers were added, and with include_self=True what"
        " input has there is one of them.",
        gives=_alone(lambda c: _divided(c, counts(c, False)) if c.include_self else None),
    ),
    Mistake(
        "With include_self=False the mean is divided by one too many: what input has there"
        " was not added, so it is not counted.",
        gives=_alone(lambda c: None if c.include_self else _divided(c, counts(c, True))),
    ),
    Mistake(
        "The mean is not divided by how many numbers were added.",
        gives=_alone(
            lambda c: reduced(c, reduce="sum") if c.reduce == "mean" else None,
        ),
    ),
    # on some numbers the two give the same
    *(
        Mistake(
            "A mean of integers is rounded down, to minus infinity: -7/2 gives -4. Converting to"
            " integers cuts towards zero, and round() goes to the nearest: torch.div(total, count,"
            " rounding_mode='floor') or Python's // do what torch does.",
            gives=_alone(wrong),
        )
        for wrong in (_cut, _to_nearest)
    ),
    Mistake(
        "Only a mean of integers is rounded down; one of floating-point numbers is not.",
        when=_floored,
    ),
    Mistake(
        "amax or amin starts at 0, which may be more or less than all the numbers: start with"
        " the first of them.",
        gives=_alone(lambda c: _bounded_by(c, 0, "amax", "amin")),
    ),
    Mistake(
        "A product that starts at 0 stays 0: start with the first number, or with 1.",
        gives=_alone(lambda c: _bounded_by(c, 0, "prod")),
    ),
    Mistake(
        "amax and amin are exchanged.",
        gives=_alone(_exchanged),
    ),
    Mistake(
        "amin gives the largest number: take torch.minimum there.",
        gives=_alone(lambda c: reduced(c, reduce="amax") if c.reduce == "amin" else None),
    ),
    Mistake(
        "amax gives the smallest number: take torch.maximum there.",
        gives=_alone(lambda c: reduced(c, reduce="amin") if c.reduce == "amax" else None),
    ),
    Mistake(
        "You read src at index[i]. It is the other way round: index[i] is the place that src[i]"
        " goes to.",
        when=_reads_at_index,
    ),
    Mistake(
        "scatter_reduce, index_reduce, index_add and scatter_add would do it for you. All else is"
        " allowed: a loop, masks such as src[index == i], sorting.",
        when=lambda e: e.says("is what this exercise asks you to write"),
    ),
    Mistake(
        "A mean of integers is an integer here, rounded down. Dividing with / makes a"
        " floating-point number of it: divide with rounding_mode='floor' or //.",
        when=_divided_to_float,
    ),
    Mistake(
        "On other dtypes this reduction works. These are all that torch takes, integers of 8"
        " bits, bool and complex numbers among them: does the line that fails need one of"
        " the others?",
        when=_fails_on_one_dtype,
    ),
    Mistake(
        "These integers have more digits than a floating-point number can hold: total /"
        " count, mean() and float() go through one. Stay with integers, and divide with //.",
        when=lambda e: "large" in e.case.name and e.diagnosis is Diagnosis.WRONG_VALUE,
    ),
    Mistake(
        "A place that index does not name keeps what input has there, whatever include_self"
        " says: nothing is reduced there.",
        when=_elsewhere,
    ),
    Mistake(
        "A nan among the numbers has to give nan. Python's max and min, and comparisons with"
        " < and >, lose it; torch.maximum, torch.minimum, amax and amin keep it.",
        when=_loses_nan,
    ),
    Mistake(
        "index may be shorter than src; then only the first len(index) numbers of src count.",
        when=lambda e: len(e.case.index) < len(e.case.src),
    ),
    Mistake(
        "An empty index names no place: the result is a copy of input.",
        when=lambda e: len(e.case.index) == 0 and e.diagnosis is not Diagnosis.ALIASED,
    ),
)
