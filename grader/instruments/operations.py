"""Refuses and counts the operations of torch that a call makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from headcount.rank.recorder import ForbiddenCall

__all__ = ["EagerDispatchMode", "count_operations", "elementwise_by_hand", "refuse_operations"]


class EagerDispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode that does not import torch's compiler."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # otherwise torch imports its compiler, to keep it out of the modes' own methods, which
        # takes more than a second in every rank
        return False


class _Refusal(EagerDispatchMode):
    """A dispatch mode that raises when an operation is about to run that may not.

    Args:
        refused: of the name of an operator, why it may not run; empty if it may.
        small: number of elements up to which a tensor may be an argument of it all the same.
    """

    def __init__(self, refused: Callable[[str], str], small: int = -1) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._first: ForbiddenCall | None = None
        self._refused = refused
        self._small = small

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        why = self._refused(func.overloadpacket.__name__.rstrip("_"))
        sizes = (one.numel() for one in args if isinstance(one, torch.Tensor))
        if why and max(sizes, default=sys.maxsize) > self._small:
            error = ForbiddenCall(why)
            self._first = self._first or error
            raise error
        return func(*args, **(kwargs or {}))

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return a function's result.

        Raises:
            ForbiddenCall: an operation was used, even if the function caught the exception.
        """
        with self:
            value = function(*arguments)
        if self._first is not None:
            raise self._first
        return value


def refuse_operations(names: frozenset[str], function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that may not use some of torch's operations, and return its result.

    Args:
        names: names of operators without namespace, overload and the underscore of the
            in-place form, such as ``scatter_add``.
        function, arguments: the call.

    Raises:
        ForbiddenCall: an operation was used.
    """
    refused = {name: f"{name} is what this exercise asks you to write" for name in names}
    return _Refusal(lambda name: refused.get(name, "")).call(function, *arguments)


#: Operators that make tensors, look at them in another way, or copy them, and compute nothing.
_COMPUTING_NOTHING = {
    "alias", "as_strided", "cat", "clone", "contiguous", "copy", "detach", "diagonal", "empty",
    "empty_like", "empty_strided", "expand", "expand_as", "fill", "flatten", "full", "full_like",
    "is_same_size", "item", "lift_fresh", "movedim", "narrow", "new_empty", "new_empty_strided",
    "new_full", "new_ones", "new_zeros", "ones", "ones_like", "permute", "ravel", "reshape",
    "resize", "scalar_tensor", "select", "set", "slice", "split", "split_with_sizes", "squeeze",
    "stack", "t", "to", "transpose", "unbind", "unfold", "unsqueeze", "view", "view_as", "zero",
    "zeros", "zeros_like", "_local_scalar_dense", "_reshape_alias", "_reshape_copy", "_to_copy",
    "_unsafe_view",
}  # fmt: skip


def elementwise_by_hand(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that has to compute element by element itself, and return its result.

    Of torch it may use what makes, views and copies tensors, and on single elements all.  This is
    a list of what is allowed, since there are too many ways to have torch add two tensors.

    Raises:
        ForbiddenCall: another operation was used.
    """

    def refused(name: str) -> str:
        if name in _COMPUTING_NOTHING:
            return ""
        return f"{name} has torch compute on whole tensors; write the loop over their elements"

    return _Refusal(refused, small=1).call(function, *arguments)


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
