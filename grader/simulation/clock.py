"""Virtual time: whole ticks, so that sums are exact and runs are the same to the bit."""

from __future__ import annotations

from decimal import Decimal

__all__ = ["PER_SECOND", "seconds_of", "ticks_of"]

#: A tick is 10⁻²¹ s: a byte at 1 TB/s takes a billion of them.
PER_SECOND = 10**21


def ticks_of(seconds: float) -> int:
    """A time as written, such as ``2.5e-6``, in ticks."""
    # what was written, and not the binary fraction next to it
    return int((Decimal(repr(seconds)) * PER_SECOND).to_integral_value())


def seconds_of(ticks: int) -> float:
    """A number of ticks in seconds, rounded once."""
    return ticks / PER_SECOND
