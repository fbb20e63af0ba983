"""Small networks for data parallelism, and how a rank trains one with a student's answer.

The adapters below travel to the ranks together with what they use of this module,
and hold no oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

__all__ = [
    "ARCHITECTURES",
    "READY",
    "average_in_rank",
    "build",
    "loss_of",
    "train_in_rank",
    "trainable",
]

#: The mark of a gradient that is ready.
READY = "gradient"


class _Shared(nn.Module):
    """One layer that is used twice, and a head whose weight is the layer's."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)
        self.head.weight = self.layer.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.layer(torch.relu(self.layer(x)))))  # type: ignore[no-any-return]


class _Spare(nn.Module):
    """Layers that no rank uses: the first one to be made, and the last."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Linear(4, 3)
        self.body = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
        self.after = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)  # type: ignore[no-any-return]


class _Experts(nn.Module):
    """Three experts, of which an input takes the one that its first number names."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.experts = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))
        self.last = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = self.experts[int(x[0, 0])]
        return self.last(torch.tanh(chosen(torch.tanh(self.first(x)))))  # type: ignore[no-any-return]


class _Halves(nn.Module):
    """Takes two arguments, one of them by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(4, 3)
        self.right = nn.Linear(4, 3, bias=False)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return torch.tanh(self.left(x)) + scale * torch.tanh(self.right(x))


def _deep() -> nn.Module:
    layers = [layer for _ in range(4) for layer in (nn.Linear(4, 4), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(4, 1))


def _frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    for parameter in (*module[0].parameters(), module[4].bias):
        assert isinstance(parameter, nn.Parameter)
        parameter.requires_grad_(False)
    return module


#: The networks, by name; every one takes rows of four numbers.
ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "one layer": lambda: nn.Linear(4, 3),
    "deep": _deep,
    "tied weights": _Shared,
    "frozen parameters": _frozen,
    "unused layers": _Spare,
    "experts": _Experts,
    "two arguments": _Halves,
}


def build(architecture: str, dtype: torch.dtype, state: Sequence[torch.Tensor]) -> nn.Module:
    """A network whose distinct parameters hold ``state``, in their order."""
    module = ARCHITECTURES[architecture]().to(dtype)
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), state, strict=True):
            parameter.copy_(value)
    return module


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """The distinct parameters that are trained, by name."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def loss_of(module: Callable[..., Any], architecture: str, x: torch.Tensor) -> torch.Tensor:
    """What a rank minimises on its part of a batch."""
    output = module(x, scale=0.5) if architecture == "two arguments" else module(x)
    loss: torch.Tensor = output.square().sum()
    return loss


def average_in_rank(
    answer: Callable[[nn.Module], Any],
    architecture: str,
    dtype: str,
    state: list[torch.Tensor],
    gradients: list[torch.Tensor | None],
) -> dict[str, Any]:
    """Give this rank's network its gradients, call the answer, and report what they have become."""
    module = build(architecture, getattr(torch, dtype), state)
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        # the answer may change it in place: the argument stays as it was
        parameter.grad = None if gradient is None else gradient.clone()
    returned = answer(module)
    report: dict[str, Any] = {"returned": returned}
    for name, parameter in module.named_parameters():
        report[f"gradient of {name}"] = parameter.grad
    report["weights"] = {name: p.detach() for name, p in module.named_parameters()}
    return report


def train_in_rank(
    answer: Callable[[nn.Module, int], nn.Module],
    architecture: str,
    dtype: str,
    bucket_bytes: int,
    state: list[torch.Tensor],
    batches: list[torch.Tensor],
) -> dict[str, Any]:
    """Wrap this rank's network, and go forward and backward on each batch.

    A gradient that is ``None`` is reported as zeros: both are right where no rank uses
    the parameter.
    """
    module = build(architecture, getattr(torch, dtype), state)
    note = getattr(dist.group.WORLD, "mark", lambda text: None)
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
    for parameter in parameters.values():
        # hooks run in the order in which they are registered: this one before the answer's
        parameter.register_post_accumulate_grad_hook(lambda _: note(READY))  # type: ignore[no-untyped-call]
    wrapped = answer(module, bucket_bytes)
    report: dict[str, Any] = {
        "is a module": isinstance(wrapped, nn.Module),
        "weights": {name: p.detach().clone() for name, p in module.named_parameters()},
    }
    for number, x in enumerate(batches, 1):
        # both ways in which people clear them; the first time there is nothing to clear
        if number > 1:
            module.zero_grad(set_to_none=number % 2 == 0)
        loss = loss_of(wrapped, architecture, x)
        loss.backward()  # type: ignore[no-untyped-call]
        wrapped.finish_gradient_synchronization()  # type: ignore[operator]
        step: dict[str, Any] = {"loss": loss.detach()}
        for name, p in parameters.items():
            gradient = torch.zeros_like(p) if p.grad is None else p.grad.detach().clone()
            step[f"gradient of {name}"] = gradient
        report[f"step {number}"] = step
    own = {id(p) for p in module.parameters()}
    report["parameters seen by an optimizer"] = len({id(p) for p in wrapped.parameters()} & own)
    return report
