"""Pulls gradients back through a call, and marks collectives that autograd does not see."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["BETWEEN", "UNSEEN", "differentiate", "mark_end", "mark_unseen_collectives"]

#: Text of the mark between forward and backward.
BETWEEN = "forward has ended"


def mark_end(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the same, and marks in the rank's trace that it has ended."""

    def marked(*arguments: Any) -> Any:
        result = forward(*arguments)
        group: Any = dist.group.WORLD
        group.mark(BETWEEN)
        return result

    return marked


def differentiate(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    leaves: Mapping[str, int],
    cotangent: torch.Tensor,
) -> dict[str, Any]:
    """Call a function, and pull a cotangent back through it.

    Args:
        function, arguments: the call.
        leaves: names and positions of the arguments whose gradients are wanted.
        cotangent: the gradient of some loss with respect to the result.  A result of another
            shape or dtype goes backward from ones.

    Returns:
        ``result``, and a ``gradient of NAME`` for every leaf, which is ``None`` if no gradient
        reaches it.

    Raises:
        RuntimeError: backward raised ``NotImplementedError``, which would otherwise be taken
            for the stub of the whole function.
    """
    for place in leaves.values():
        arguments[place].requires_grad_()
    result = function(*arguments)
    found: dict[str, Any] = {"result": result}
    found |= {f"gradient of {name}": None for name in leaves}
    if isinstance(result, torch.Tensor) and result.requires_grad:
        if result.shape != cotangent.shape or result.dtype != cotangent.dtype:
            # the result is wrong; all the same it goes backward, as it would in training, for
            # other ranks may wait in theirs for what this one sends there
            cotangent = torch.ones_like(result)
        wanted = [arguments[place] for place in leaves.values()]
        # the gradient of this product with respect to the result is exactly the cotangent;
        # passing that to autograd makes torch import its symbolic shapes, which takes a second
        product = (result * cotangent).sum()
        try:
            gradients = torch.autograd.grad(product, wanted, allow_unused=True)
        except NotImplementedError as error:
            # torch raises this for a Function without a backward; the stub has been replaced
            unwritten = RuntimeError(f"backward is not written yet: {error}")
            raise unwritten.with_traceback(error.__traceback__) from error
        found |= {f"gradient of {name}": g for name, g in zip(leaves, gradients, strict=True)}
    if isinstance(result, torch.Tensor):
        found["result"] = result.detach()
    return found


#: Text of the mark for a collective that changes a tensor behind autograd's back.
UNSEEN = "a collective that autograd does not see"


@contextlib.contextmanager
def mark_unseen_collectives() -> Iterator[Callable[[Any], Any]]:
    """Mark every all-reduce in this context that writes into a tensor with a history.

    It gives a function that returns a result, and marks it if an all-reduce wrote into it where
    autograd was told not to look, and no function of its own says how to go back.
    """
    group: Any = dist.group.WORLD
    original = group.allreduce
    written: set[int] = set()

    def looked_at(result: Any) -> Any:
        node = result.grad_fn if isinstance(result, torch.Tensor) else None
        if node and result.untyped_storage().data_ptr() in written and not _has_function(node):
            group.mark(UNSEEN)
        return result

    def noticed(tensors: Any, *options: Any) -> Any:
        # inside a torch.autograd.Function autograd records nothing, and the call is fine
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            group.mark(UNSEEN)
        written.update(t.untyped_storage().data_ptr() for t in tensors if t.numel())
        return original(tensors, *options)

    group.allreduce = noticed
    try:
        yield looked_at
    finally:
        # simulated ranks share a group, and one of them may have restored it
        vars(group).pop("allreduce", None)


def _has_function(node: Any) -> bool:
    """Return whether a ``torch.autograd.Function`` is in a graph."""
    own = isinstance(node, torch.autograd.function.BackwardCFunction)
    return own or any(_has_function(one) for one, _ in node.next_functions if one)
