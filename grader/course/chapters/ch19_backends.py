"""Chapter 19: which backend carries the bytes, and where its tensors live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.exercise.cases import Case, Draw
from grader.exercise.declaration import Exercise, Mistake, Values
from headcount.core.verdict import Diagnosis

# Which backend. -------------------------------------------------------------------

_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}

#: What no backend of the course is for, though torch names one for some of these devices.
_OTHERS = ("meta", "mps", "tpu")

#: What is no device type, but a part of one that has a backend, or begins with one.
_PARTS = ("", "cp", "cudax")


def _device_types(draw: Draw) -> Iterator[Case]:
    for device_type in (*_BACKENDS, *_OTHERS, *_PARTS):
        refused = device_type not in _BACKENDS
        name = f"refuses {device_type!r}" if refused else repr(device_type)
        yield draw.case(name, device_type=device_type, refused=refused)


def _answered(c: Case, right: Any) -> list[Any]:
    return [{"raises": True} if c.refused else right] * c.n


def _asked(answer: Callable[..., Any], *arguments: Any) -> Any:
    """Call the answer; where it should refuse, return whether it raised a ValueError."""
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


pick_backend = Exercise(
    signature="pick_backend(device_type: str) -> str",
    summary="the backend for tensors of a device type",
    world_sizes=(1,),
    inputs=_device_types,
    adapter=_asked,
    values=Values(lambda c: _answered(c, _BACKENDS.get(c.device_type))),
    mistakes=(
        Mistake(
            "Raising is right, but it has to be a ValueError, and no other exception, such as the"
            " KeyError of a dictionary.",
            when=lambda e: e.case.refused and e.diagnosis is Diagnosis.EXCEPTION,
        ),
        Mistake(
            "For 'cuda' and 'cpu' raise nothing, even on a machine without a GPU.",
            when=lambda e: not e.case.refused and e.raised("ValueError"),
        ),
        Mistake(
            "Only the whole words 'cuda' and 'cpu' have a backend here, and 'cp' or 'cudax' has"
            " none. Compare with ==, or look the word up in a dictionary.",
            when=lambda e: all(one.case.device_type in _PARTS for one in e.failed),
        ),
    ),
)

# Which device. --------------------------------------------------------------------

#: Backend and local rank.
_PLACES = (
    ("nccl", 0), ("nccl", 1), ("nccl", 7), ("nccl", 17), ("gloo", 0), ("gloo", 5), ("mpi", 0),
    ("mpi", 3), ("tcp", 0), ("pigeon", 2),
)  # fmt: skip


def _places(draw: Draw) -> Iterator[Case]:
    for backend, local_rank in _PLACES:
        refused = backend not in ("nccl", "gloo", "mpi")
        name = f"{'refuses ' if refused else ''}{backend!r}, local rank {local_rank}"
        yield draw.case(name, local_rank=local_rank, backend=backend, refused=refused)


def _place(c: Case) -> torch.device:
    return torch.device("cuda", c.local_rank) if c.backend == "nccl" else torch.device("cpu")


device_for = Exercise(
    signature="device_for(local_rank: int, backend: str) -> torch.device",
    summary="where a rank's tensors live, by its backend",
    world_sizes=(1,),
    inputs=_places,
    adapter=_asked,
    values=Values(lambda c: _answered(c, _place(c))),
    mistakes=(
        Mistake(
            "torch.device('cuda', 1) can be named on any machine: do not ask whether the GPU is"
            " there.",
            when=lambda e: (
                e.diagnosis in (Diagnosis.EXCEPTION, Diagnosis.WRONG_VALUE)
                and e.case.backend == "nccl"
                and e.calls("is_available", "device_count", "is_nccl_available")
            ),
        ),
        Mistake(
            "For 'gloo' and 'mpi' raise nothing: their tensors are on the CPU.",
            when=lambda e: e.case.backend in ("gloo", "mpi") and e.raised("ValueError"),
        ),
        Mistake(
            "For an unknown backend, raise a ValueError and no other exception.",
            when=lambda e: e.case.refused and e.diagnosis is Diagnosis.EXCEPTION,
        ),
    ),
)
