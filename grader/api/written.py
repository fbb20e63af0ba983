"""How our functions are written, which a call with the wrong arguments is answered with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from headcount.core.errors import RequestError, is_ours

__all__ = ["written"]

__tracebackhide__ = is_ours

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: What stands in an example for a function of the caller's own.
_YOURS = "broadcast"


def written(
    example: str, takes_function: bool = True
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function answer a call that it cannot be with how it is written, in one line.

    Args:
        example: a call, in which ``broadcast`` stands for a function of the caller's own.
        takes_function: whether the first argument is such a function, and no text or number.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*args: _P.args, **named: _P.kwargs) -> _R:
            first = args[0] if args and takes_function else None
            mend = f"write {_with(example, args)}"
            if isinstance(first, str) and first.isidentifier():
                raise RequestError(
                    f"{function.__name__} takes the function itself, not its name: {mend}"
                )
            if isinstance(first, int) and any(map(callable, args)):
                raise RequestError(f"the function comes first: {mend}")
            try:
                signature.bind(*args, **named)
            except TypeError as error:
                raise RequestError(f"{function.__name__}: {error}; {mend}") from None
            return function(*args, **named)

        return called

    return decorate


def _with(example: str, args: Sequence[Any]) -> str:
    """Return an example with the caller's own function in it, if one was given."""
    names = (one if isinstance(one, str) else getattr(one, "__name__", "") for one in args)
    name = next((name for name in names if name.isidentifier()), _YOURS)
    return example.replace(_YOURS, name)
