"""The texts of the marks that an adapter leaves in a rank's trace, and that limits read there.

A rank writes them, so a reader takes them for what an answer claims: a forged one may be anything.
"""

from __future__ import annotations

import re

__all__ = ["memory_mark", "read_memory_mark", "read_time_mark", "time_mark"]

_MEMORY = re.compile(r"holds (\d+) bytes (.*)", re.S)
_TIME = re.compile(r"returned (0x1?\.?[0-9a-f]{0,13}p[+-]\d{1,3})")


def memory_mark(nbytes: int, when: str, what: str) -> str:
    """Return the mark that says how much a rank holds, at which moment, and in which tensors."""
    return f"holds {nbytes} bytes {when}: {what}" if what else f"holds {nbytes} bytes {when}"


def read_memory_mark(text: str) -> tuple[int, str] | None:
    """Return the bytes, and the moment and tensors, of a memory mark; ``None`` for another text."""
    match = _MEMORY.fullmatch(text)
    return (int(match[1]), match[2]) if match else None


def time_mark(seconds: float) -> str:
    """Return the mark that says which time, in seconds, an answer has returned."""
    return f"returned {float.hex(seconds)}"


def read_time_mark(text: str) -> float | None:
    """Return the seconds of a time mark; ``None`` for another text."""
    match = _TIME.fullmatch(text)
    return float.fromhex(match[1]) if match else None
