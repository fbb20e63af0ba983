"""What torch asks a process group about itself, answered by groups that are written in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

__all__ = ["TorchGroup"]


class TorchGroup(dist.ProcessGroup):
    """A process group in Python, below which torch finds no backend of its own.

    Args:
        rank, size: rank of this process in the group, and number of members.
        members: the global ranks, indexed by rank in the group.
        name: the group's name, the same on every member.
    """

    #: asked by ``batch_isend_irecv`` of torch ≥ 2.14: it then calls isend and irecv
    supports_coalescing = False
    #: asked by ``split_group`` of torch ≥ 2.14, which then refuses
    supports_splitting = False
    #: the device that its tensors are on
    _device = torch.device("cpu")

    def __init__(self, rank: int, size: int, members: Sequence[int], name: str) -> None:
        # the one constructor that torch lets a Python subclass use
        super().__init__(rank, size)  # type: ignore[call-arg]
        self._members = list(members)
        self._name = name
        self._desc = ""
        #: set when torch has finished making the group
        self.made = False

    def __repr__(self) -> str:
        plain = dist.ProcessGroup
        return f"<{plain.__module__}.{plain.__name__} object at {id(self):#x}>"

    def getGroupDesc(self) -> str:  # noqa: N802 - torch's name
        """Return torch's description of the group."""
        return self._desc

    def setGroupDesc(self, desc: str) -> None:  # noqa: N802
        """Store torch's description, which it sets after making the group."""
        self._desc = desc

    @property
    def _device_types(self) -> list[torch.device]:
        """The devices that its tensors may be on; none while torch is making the group.

        Torch 2.15 adds a flight recorder to a new group that has a device, and looks for a C++
        backend there.
        """
        return [self._device] if self.made else []

    def _get_backend(self, device: torch.device) -> Any:
        """Return this group, since whatever is below it is private."""
        return self

    get_backend = _get_backend  # the public name, since torch 2.14
