"""Process groups that an answer returns, as data of a type of their own on the way to the judge."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

__all__ = ["group_as_data"]


def group_as_data(value: Any) -> tuple[str, Any]:
    """Return ``("group", its global ranks)`` of a process group, and ``("other", it)`` of the rest.

    So whatever an answer returns in the place of a group, it does not read like one.
    """
    if issubclass(type(value), dist.ProcessGroup):
        return "group", dist.get_process_group_ranks(value)
    return "other", value
