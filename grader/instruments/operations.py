"""Refuses and counts the operations of torch that a call makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from headcount.rank.recorder import ForbiddenCall

__all__ = ["EagerDispatchMode", "count_operations", "refuse_operations"]


class EagerDispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode that does not import torch's compiler."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # otherwise torch imports its compiler, to keep it out of the modes' own methods, which
        # takes more than a second in every rank
        return False


class _Refusal(EagerDispatchMode):
    """A dispatch mode that raises when one of the named operations is about to run."""

    def __init__(self, names: frozenset[str], small: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.first: ForbiddenCall | None = None
        self._names = names
        self._small = small

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__.rstrip("_")
        sizes = (one.numel() for one in args if isinstance(one, torch.Tensor))
        if name in self._names and max(sizes, default=sys.maxsize) > self._small:
            error = ForbiddenCall(f"{name} is what this exercise asks you to write")
            self.first = self.first or error
            raise error
        return func(*args, **(kwargs or {}))


def refuse_operations(
    names: frozenset[str], function: Callable[..., Any], *arguments: Any, small: int = -1
) -> Any:
    """Call a function that may not use some of torch's operations, and return its result.

    Args:
        names: names of operators without namespace, overload and the underscore of the
            in-place form, such as ``scatter_add``.
        function, arguments: the call.
        small: number of elements up to which a tensor may be an argument of them all the same.

    Raises:
        ForbiddenCall: an operation was used, even if the function caught the exception.
    """
    mode = _Refusal(names, small)
    with mode:
        value = function(*arguments)
    if mode.first is not None:
        raise mode.first
    return value


class _Count(EagerDispatchMode):
    """A dispatch mode that counts operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.operations += 1
        return func(*args, **(kwargs or {}))


def count_operations(function: Callable[..., Any], *arguments: Any) -> int:
    """Return how many operations of torch a call makes, in loops without lines as well.

    ``list(map(torch.mul, a, b))`` is a loop in which
    :func:`~grader.instruments.count_lines` sees no lines.
    """
    count = _Count()
    with count:
        function(*arguments)
    return count.operations
