"""What the compiled ``vector_add`` is called with: tensors that fit, and tensors that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.course.cases import Case, Draw, Kind

__all__ = ["add_in_rank", "additions", "expected"]

_FITTING = (
    Kind(torch.float32, (5,)),
    Kind(torch.float32, (0,)),
    Kind(torch.float32, (1000,)),
    Kind(torch.float32, (3, 4)),
)

#: Names, and shapes and dtypes of the two.
_MISFITS = (
    ("the second one shorter", (torch.float32, (6,)), (torch.float32, (5,))),
    ("the second one longer", (torch.float32, (5,)), (torch.float32, (6,))),
    ("as many elements, another shape", (torch.float32, (2, 6)), (torch.float32, (3, 4))),
    ("one element and many", (torch.float32, (1,)), (torch.float32, (7,))),
    ("dtypes that differ", (torch.float32, (6,)), (torch.float64, (6,))),
    ("dtypes that differ, of one size", (torch.float32, (6,)), (torch.int32, (6,))),
)


def additions(draw: Draw) -> Iterator[Case]:
    """Fitting ones first; then strides, then what must be refused."""
    for kind in _FITTING:
        yield draw.case(str(kind), a=draw.tensor(kind), b=draw.tensor(kind), view="plain")
    square = Kind(torch.float32, (4, 6))
    a, b = draw.tensor(square), draw.tensor(Kind(torch.float32, (6, 4)))
    yield draw.case("one of them transposed", a=a, b=b, view="transposed")
    long, short = draw.tensor(Kind(torch.float32, (14,))), draw.tensor(Kind(torch.float32, (7,)))
    yield draw.case("every other element of one", a=long, b=short, view="strided")
    for name, (dtype, shape), (other, second) in _MISFITS:
        a, b = draw.tensor(Kind(dtype, shape)), draw.tensor(Kind(other, second))
        yield draw.case(f"misfits: {name}", a=a, b=b, view="misfit")


def expected(c: Case) -> list[Any]:
    """Their sum, or a refusal."""
    if c.view == "misfit":
        return [{"raises": True}] * c.n
    a, b = _viewed(c.a, c.b, c.view)
    return [a + b] * c.n


def _viewed(a: torch.Tensor, b: torch.Tensor, view: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The two as they are handed over."""
    if view == "transposed":
        return a, b.t()
    if view == "strided":
        return a[::2], b
    return a, b


def add_in_rank(vector_add: Callable[..., Any], a: Any, b: Any, view: str) -> Any:
    """Call the compiled function; an exception is an answer where the two do not fit."""
    one, two = _viewed(a, b, view)
    if view != "misfit":
        return vector_add(one, two)
    try:
        vector_add(one, two)
    except Exception:  # which of them is C++'s own affair
        return {"raises": True}
    return {"raises": False}
