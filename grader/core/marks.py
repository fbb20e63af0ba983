"""Names for places in a program, so that a record tells when each rank came by."""

from __future__ import annotations

import torch.distributed as dist

__all__ = ["mark"]

#: Characters of a name.
_LONGEST = 60


def mark(text: str) -> None:
    """Put a name into the record of this rank, here and now.

    ``run`` and ``simulate`` keep it in ``trace.marks``, and ``timeline`` shows it.  In a
    program that nobody records it does nothing.

    Args:
        text: up to 60 characters, such as "backward ends".

    Raises:
        TypeError: it is no text.
        ValueError: it is longer.
    """
    if not isinstance(text, str):
        raise TypeError(f"mark takes a text, not a {type(text).__name__}")
    if len(text) > _LONGEST:
        raise ValueError(f"mark takes up to {_LONGEST} characters, not {len(text)}")
    if not dist.is_initialized():
        return
    note = getattr(dist.group.WORLD, "mark", None)
    if note is not None:
        note(text)
