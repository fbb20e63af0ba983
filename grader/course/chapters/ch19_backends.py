"""Chapter 19: which backend carries the bytes, and where its tensors live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.cases import Case, Draw
from grader.course.exercise import Evidence, Exercise, Mistake, Values

# Which backend. -------------------------------------------------------------------

_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}

#: Device types of torch that none of its backends is for; others might have one some day.
_DEVICELESS = ("meta", "vulkan")


def _device_types(draw: Draw) -> Iterator[Case]:
    for device_type in (*_BACKENDS, *_DEVICELESS):
        refused = device_type not in _BACKENDS
        name = f"refuses {device_type!r}" if refused else repr(device_type)
        yield draw.case(name, device_type=device_type, refused=refused)


def _answered(c: Case, right: Any) -> list[Any]:
    return [{"raises": True} if c.refused else right] * c.n


def _asked(answer: Callable[..., Any], *arguments: Any) -> Any:
    """Call the answer; where it should be refused, return whether it raised ValueError."""
    *passed, refused = arguments
    if refused:
        try:
            answer(*passed)
        except ValueError:
            return {"raises": True}
        return {"raises": False}
    value = answer(*passed)
    if isinstance(value, str):
        return str(value)  # torch's own class for names of backends is a string, too
    if isinstance(value, torch.device) and value.type == "cpu":
        return torch.device("cpu")  # there is but one, with a number or without
    return value


def _unless_refused(answer: Callable[[Case], Any]) -> Callable[[Case], list[Any] | None]:
    """Make a ``gives``: what a mistake gives in cases with an answer; ``None`` in the others."""
    return lambda c: None if c.refused else [answer(c)] * c.n


def _not_refused(c: Case) -> list[Any] | None:
    return [{"raises": False}] * c.n if c.refused else None


def _asks_the_machine(e: Evidence) -> bool:
    """Return whether the source looks for GPUs, and the failure is not a refusal."""
    return not e.case.refused and e.calls("is_available", "device_count", "is_nccl_available")


pick_backend = Exercise(
    signature="pick_backend(device_type: str) -> str",
    summary="the backend for tensors of a device type",
    world_sizes=(1,),
    inputs=_device_types,
    adapter=_asked,
    values=Values(lambda c: _answered(c, _BACKENDS.get(c.device_type))),
    mistakes=(
        Mistake(
            "Go by the argument, not by what this machine has: for 'cuda' the answer is 'nccl', "
            "even where there is no GPU.",
            gives=_unless_refused(lambda _: "gloo"),
            when=_asks_the_machine,
        ),
        Mistake(
            "gloo moves GPU tensors by way of the CPU, if at all: for 'cuda' the answer is 'nccl'.",
            gives=_unless_refused(lambda _: "gloo"),
        ),
        Mistake(
            "It is the other way round: NCCL takes only GPU tensors, and gloo is for the CPU.",
            gives=_unless_refused(lambda c: "nccl" if c.device_type == "cpu" else "gloo"),
        ),
        Mistake(
            "Torch writes the names of backends in small letters: 'nccl', 'gloo'.",
            gives=_unless_refused(lambda c: _BACKENDS[c.device_type].upper()),
        ),
        Mistake(
            "MPI would carry CPU tensors too, but torch's wheels come without it: return 'gloo'.",
            gives=_unless_refused(lambda c: "nccl" if c.device_type == "cuda" else "mpi"),
        ),
        Mistake(
            "Raising is right, but it has to be a ValueError; the KeyError of a dictionary is not "
            "one.",
            when=lambda e: e.case.refused and e.says("KeyError"),
        ),
        Mistake(
            "For a device type without a backend, raise a ValueError and no other exception.",
            when=lambda e: e.case.refused and e.diagnosis is Diagnosis.EXCEPTION,
        ),
        Mistake(
            "For 'cuda' and 'cpu' raise nothing, even on a machine without a GPU.",
            when=lambda e: not e.case.refused and e.says("ValueError"),
        ),
        Mistake(
            "For a device type without a backend raise ValueError: a default would only fail "
            "later, in a place that is harder to find.",
            gives=_not_refused,
        ),
    ),
)

# Which device. --------------------------------------------------------------------

#: Backend and local rank.
_PLACES = (
    ("nccl", 0), ("nccl", 1), ("nccl", 7), ("gloo", 0), ("gloo", 5), ("mpi", 0), ("mpi", 3),
    ("tcp", 0), ("pigeon", 2),
)  # fmt: skip


def _places(draw: Draw) -> Iterator[Case]:
    for backend, local_rank in _PLACES:
        refused = backend not in ("nccl", "gloo", "mpi")
        name = f"{'refuses ' if refused else ''}{backend!r}, local rank {local_rank}"
        yield draw.case(name, local_rank=local_rank, backend=backend, refused=refused)


def _place(c: Case) -> torch.device:
    return torch.device("cuda", c.local_rank) if c.backend == "nccl" else torch.device("cpu")


def _on_cuda(*backends: str) -> Callable[[Case], list[Any] | None]:
    """Make a ``gives``: the results if tensors of these backends are on GPUs, one for each rank."""
    return _unless_refused(
        lambda c: torch.device("cuda", c.local_rank) if c.backend in backends else _place(c)
    )


device_for = Exercise(
    signature="device_for(local_rank: int, backend: str) -> torch.device",
    summary="where a rank's tensors live, by its backend",
    world_sizes=(1,),
    inputs=_places,
    adapter=_asked,
    values=Values(lambda c: _answered(c, _place(c))),
    mistakes=(
        Mistake(
            "'cuda' without a number is the current device, which is cuda:0 on every rank that has"
            " not set another. Return torch.device('cuda', local_rank).",
            gives=_unless_refused(
                lambda c: torch.device("cuda") if c.backend == "nccl" else _place(c)
            ),
        ),
        Mistake(
            "All ranks of a machine are on one GPU now, which NCCL refuses: each needs its own, "
            "with the number local_rank.",
            gives=_unless_refused(
                lambda c: torch.device("cuda", 0) if c.backend == "nccl" else _place(c)
            ),
        ),
        Mistake(
            "GPUs are counted from 0, as local ranks are: cuda:local_rank.",
            gives=_unless_refused(
                lambda c: (
                    torch.device("cuda", c.local_rank + 1) if c.backend == "nccl" else _place(c)
                )
            ),
        ),
        Mistake("MPI's tensors are on the CPU here, like gloo's.", gives=_on_cuda("nccl", "mpi")),
        Mistake(
            "Only NCCL's tensors live on a GPU here: gloo's and MPI's are on the CPU.",
            gives=_on_cuda("nccl", "gloo", "mpi"),
        ),
        Mistake(
            "torch.device('cuda', 1) can be named on any machine: do not ask whether the GPU is"
            " there.",
            when=lambda e: e.diagnosis is Diagnosis.EXCEPTION and _asks_the_machine(e),
        ),
        Mistake(
            "For 'gloo' and 'mpi' raise nothing: their tensors are on the CPU.",
            when=lambda e: e.case.backend in ("gloo", "mpi") and e.says("ValueError"),
        ),
        Mistake(
            "For an unknown backend, raise a ValueError and no other exception.",
            when=lambda e: e.case.refused and e.diagnosis is Diagnosis.EXCEPTION,
        ),
        Mistake(
            "For an unknown backend raise ValueError: a device that is made up would only fail "
            "later, in a place that is harder to find.",
            gives=_not_refused,
        ),
    ),
)
