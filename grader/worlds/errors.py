"""What can go wrong between the judge and a rank, for use inside this package."""

from __future__ import annotations

__all__ = ["BrokenFrame", "TooMuch"]


class BrokenFrame(Exception):
    """Bytes from a rank that are no message of ours; someone wrote into the pipe."""


class TooMuch(BrokenFrame):
    """A rank says more than the judge will remember; it may mean it."""
