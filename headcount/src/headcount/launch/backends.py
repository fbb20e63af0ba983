"""The registry of backends: what can carry the messages of a world, and what each one needs.

Headcount's own are gloo and NCCL.  Another package brings one by an entry point of the group
``headcount.backends``, which names its :class:`BackendEntry`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol

from headcount.core.errors import RequestError
from headcount.core.resource_limits import DEFAULTS

__all__ = [
    "BACKENDS",
    "BackendEntry",
    "BackendJob",
    "backends",
    "entry_of",
    "known_backends",
    "require_backend",
]


def _missing_gloo() -> str:
    import torch.distributed as dist

    there = dist.is_available() and dist.is_gloo_available()
    return "" if there else "install a torch with gloo"


def _missing_nccl() -> str:
    import torch
    import torch.distributed as dist

    if not dist.is_nccl_available():
        return "this torch is built without NCCL; install one for CUDA"
    if not torch.cuda.device_count():
        return "there is no NVIDIA GPU here"
    return ""


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()


class BackendJob(Protocol):
    """What the ranks of one world need besides their processes."""

    @property
    def environments(self) -> list[dict[str, str]]:
        """The variables that each rank needs in its environment, by rank."""

    def close(self) -> None:
        """End what was started."""


@dataclass(frozen=True)
class BackendEntry:
    """A backend as the judge's side knows it; its transport is what a rank knows.

    Attributes:
        name: the name in ``run(f, 4, backend=name)``.
        title: the name as messages spell it.
        about: what it is, in a few words of help.
        missing: returns why it cannot be used here and the mend, or an empty string.
        found: returns what ``doctor`` says of it where it can be used.
        transport: the module whose ``BACKEND`` is the :class:`headcount.rank.transports.Backend`
            that connects its ranks.
        used_in: the chapter that needs it; empty if all of them do.
        devices: returns the number of devices that ranks need one of; None if the ranks'
            tensors are on the CPU, and worlds have any size.
        job: starts what the ranks of a world need besides their processes; None for nothing.
        call_seconds: seconds that a rank may compute, or all may sleep, in one call of a check.
        in_sandbox: whether a sandbox holds what it needs, so that a class may be graded on it.
        keeps_progress: whether a check on it counts for the learner's progress.
        survives: whether the other ranks can go on when one of them has been killed.
    """

    name: str
    title: str
    about: str
    missing: Callable[[], str]
    found: Callable[[], str]
    transport: str
    used_in: str = "chapter 19"
    devices: Callable[[], int] | None = None
    job: Callable[[int], BackendJob] | None = None
    call_seconds: float = DEFAULTS.call
    in_sandbox: bool = False
    keeps_progress: bool = True
    survives: bool = False


_ENTRIES = (
    BackendEntry(
        name="gloo",
        title="gloo",
        about="torch's own, between CPUs",
        missing=_missing_gloo,
        found=lambda: "in this torch",
        transport="headcount.rank.transports.gloo",
        used_in="",
        in_sandbox=True,
        survives=True,
    ),
    BackendEntry(
        name="nccl",
        title="NCCL",
        about="torch's own, between NVIDIA GPUs",
        missing=_missing_nccl,
        found=lambda: "1 GPU" if _gpus() == 1 else f"{_gpus()} GPUs",
        transport="headcount.rank.transports.nccl",
        devices=_gpus,
        # a GPU makes its connections when they are first used
        call_seconds=DEFAULTS.gpu_call,
        # where GPUs cannot be shared, their number decides at how many ranks an answer is judged
        keeps_progress=False,
    ),
)

#: The backends that come with headcount, by name.
BACKENDS = {entry.name: entry for entry in _ENTRIES}


@cache
def _brought() -> dict[str, BackendEntry]:
    """Return the backends of other packages, by name; to look takes a tenth of a second."""
    entries: list[BackendEntry] = [
        found.load() for found in entry_points(group="headcount.backends")
    ]
    return {entry.name: entry for entry in entries}


def known_backends() -> dict[str, BackendEntry]:
    """Return every backend by its name, those that other packages bring among them."""
    return dict(sorted({**_brought(), **BACKENDS}.items()))


def entry_of(name: str) -> BackendEntry:
    """Return a backend's entry, whether it can be used here or not.

    Raises:
        RequestError: there is no backend of this name.
    """
    found = BACKENDS.get(name) or _brought().get(name)
    if found is None:
        names = ", ".join(known_backends())
        raise RequestError(f"the backends are {names}, and {name!r} is none of them")
    return found


def require_backend(name: str) -> BackendEntry:
    """Return the entry of a backend that can be used here.

    Raises:
        RequestError: it cannot be used, or there is none of this name; the message says the
            mend.
    """
    entry = entry_of(name)
    reason = entry.missing()
    if reason:
        raise RequestError(f"no world on {entry.title}: {reason}")
    return entry


def backends() -> dict[str, str]:
    """Return which of the backends (``gloo``, ``nccl`` and what is installed besides) work here.

    Returns:
        By name: why it cannot be used, in one line; empty if it can.
    """
    return {name: entry.missing() for name, entry in known_backends().items()}
