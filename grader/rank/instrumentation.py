"""What an adapter can find out about a call of the student's; used inside the ranks.

An adapter makes the call of an exercise where that is more than passing
arguments.  These are its instruments: refuse some of torch's operations, count
the steps of the student's own code, pull a gradient back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from grader.core.source_locations import is_students
from grader.rank.recorder import ForbiddenCall

__all__ = ["differentiated", "refusing", "steps"]


class _Refusal(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raises when one of the named operations is about to run, by whatever name it is called."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would keep its compiler out of the method below, and to that end
        # import it: more than a second in every rank, for code that is not compiled
        return False

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.first: ForbiddenCall | None = None
        self._names = names

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        name = func.overloadpacket.__name__.rstrip("_")
        if name in self._names:
            error = ForbiddenCall(f"{name} is what this exercise asks you to write")
            self.first = self.first or error
            raise error
        return func(*args, **(kwargs or {}))


def refusing(names: frozenset[str], function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in which some of torch's operations may not be used.

    Args:
        names: of operators, without the namespace, the overload and the
            underscore of the in-place form: ``scatter_add``.
        function, arguments: the call.

    Raises:
        ForbiddenCall: one was used, even if the function caught the error.
    """
    mode = _Refusal(names)
    with mode:
        value = function(*arguments)
    if mode.first is not None:
        raise mode.first
    return value


def steps(function: Callable[..., Any], *arguments: Any) -> int:
    """How many lines of the student's own code a call runs, each turn of a loop counted.

    A comprehension or a loop on one line counts once a turn as well, and so
    does a generator, a lambda or a helper for each time that it is entered.
    """
    count = 0

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not is_students(frame.f_code.co_filename):
            return None
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count


def differentiated(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    leaves: Mapping[str, int],
    cotangent: torch.Tensor,
) -> dict[str, Any]:
    """Call a function and pull a cotangent back through it.

    Args:
        function, arguments: the call.
        leaves: names and positions of the arguments whose gradients are wanted.
        cotangent: the gradient of some loss by the result.

    Returns:
        ``result``, and a ``gradient of NAME`` for every leaf: ``None`` where no
        gradient reaches it.

    Raises:
        RuntimeError: backward raised ``NotImplementedError``, which of the whole
            answer would mean that it is still the stub.
    """
    for place in leaves.values():
        arguments[place].requires_grad_()
    result = function(*arguments)
    found: dict[str, Any] = {"result": result}
    found |= {f"gradient of {name}": None for name in leaves}
    fits = isinstance(result, torch.Tensor) and result.shape == cotangent.shape
    if fits and result.requires_grad and result.dtype == cotangent.dtype:
        wanted = [arguments[place] for place in leaves.values()]
        # the gradient of this by the result is the cotangent, bit by bit; handing it to
        # autograd directly makes torch import its symbolic shapes, which takes a second
        product = (result * cotangent).sum()
        try:
            gradients = torch.autograd.grad(product, wanted, allow_unused=True)
        except NotImplementedError as error:
            # torch says so of a Function without a backward; the answer has been begun
            unwritten = RuntimeError(f"backward is not written yet: {error}")
            raise unwritten.with_traceback(error.__traceback__) from error
        found |= {f"gradient of {name}": g for name, g in zip(leaves, gradients, strict=True)}
    if isinstance(result, torch.Tensor):
        found["result"] = result.detach()
    return found
