"""Values that travel between the judge and a rank, and how they read in a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["DEEP", "Opaque", "describe", "dtype_name", "reduction_name", "show", "tensors_in"]

#: Lists inside lists deeper than this are no answer.
DEEP = 16

#: a rank's result takes at most this much of a line in a report
SHORT = 72


@dataclass(frozen=True)
class Opaque:
    """Something a rank returned that has no place in an answer.

    Only its type and a short text travel, so a generator, a module or a tensor
    on another device can be named in a message and does no harm.
    """

    kind: str
    text: str = ""


def dtype_name(dtype: torch.dtype) -> str:
    """``torch.float32`` as ``float32``."""
    return str(dtype).removeprefix("torch.")


def with_article(name: str) -> str:
    """``an int64``, and ``a float32``: the name of a type with the article that it takes."""
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"


def describe(value: Any) -> str:
    """What kind of thing a value is, for "expected …, got …"."""
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return f"{with_article(dtype_name(value.dtype))} tensor of shape {tuple(value.shape)}"
    if isinstance(value, Opaque):
        return value.kind
    if isinstance(value, (list, tuple)):
        return f"{with_article(type(value).__name__)} of {len(value)}"
    if isinstance(value, (bool, int, float, str)):
        return f"the {type(value).__name__} {short(repr(value))}"
    return with_article(type(value).__name__)


def show(value: Any, width: int = SHORT) -> str:
    """A value in one short line, tensors as plain numbers."""
    return short(_show(value), width)


def short(text: str, width: int = SHORT) -> str:
    """The text, cut to one line of at most ``width`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _show(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        flat = value.detach().flatten()
        head = flat[:8].tolist()
        numbers = ", ".join(_number(x) for x in head)
        more = f", … ({flat.numel()} in all)" if flat.numel() > len(head) else ""
        if value.dim() == 0:
            return numbers
        shape = f" shape {tuple(value.shape)}" if value.dim() > 1 else ""
        return f"[{numbers}{more}]{shape}"
    if isinstance(value, Opaque):
        return value.text or value.kind
    if isinstance(value, (list, tuple)):
        left, right = "[]" if isinstance(value, list) else "()"
        return left + ", ".join(_show(item) for item in value[:8]) + right
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k}: {_show(v)}" for k, v in value.items()) + "}"
    return _number(value) if isinstance(value, float) else repr(value)


def _number(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.5g}"
    # 1.0 and 1 are different answers
    return text if not text.lstrip("-").isdigit() else f"{text}.0"


#: Units of time, the largest first, in seconds.
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def duration(seconds: float) -> str:
    """``2.0476 ms``: a time in the largest unit of which it has one."""
    for unit, name in _TIMES:
        if seconds >= unit:
            return f"{seconds / unit:.5g} {name}"
    return f"{seconds / 1e-12:.5g} ps" if seconds else "0 s"


def amount(nbytes: int) -> str:
    """``8.4 MB``: bytes in the largest unit, of powers of 1000, of which there is one."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.3g} {name}"
    return f"{nbytes} bytes"


def tensors_in(value: Any, deep: int = DEEP) -> list[torch.Tensor]:
    """Every tensor inside a value, in order, down to ``deep`` lists inside lists."""
    if isinstance(value, torch.Tensor):
        return [value]
    if deep == 0:
        return []
    if isinstance(value, Mapping):
        return [t for item in value.values() for t in tensors_in(item, deep - 1)]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors_in(item, deep - 1)]
    return []


def reduction_name(reduction: Any) -> str:
    """``SUM`` of torch's several ways to spell a reduction."""
    inner = getattr(reduction, "op", reduction)
    return str(getattr(inner, "name", inner))
