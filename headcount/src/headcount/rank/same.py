"""``headcount.same``: tells the judge what this rank holds of a value that all ranks should share.

Only hashes and short texts leave the rank, outside of the script's groups, so it cannot hang.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from numbers import Number
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist

from headcount.core.events import Same, SameValue
from headcount.core.source_locations import NAME, line_here
from headcount.core.values import dtype_name, short, with_article
from headcount.rank.recorder import checksum

__all__ = ["digest", "parts", "same"]

#: What new_group returns where it makes a group of other ranks.
_NO_MEMBER = dist.GroupMember.NON_GROUP_MEMBER

#: Elements of the largest tensor that is shown as it is; of a larger one its norm.
_FEW = 4

#: Parts that a value may have.
_MOST = 1 << 16


def same(value: Any, name: str = "", group: dist.ProcessGroup | None = None) -> None:
    """Fail the run if this value is not the same on all ranks of a group, bit for bit.

    Every rank of the group has to make the call equally often; it does not wait for the others.
    In a program that ``headcount`` does not run, the call does nothing.

    Args:
        value: numbers, texts, tensors, arrays and modules, and lists, tuples, sets and mappings of
            these.  A mapping's keys may come in any order.
        name: what to call it.  Calls of one name are compared with each other, and those without a
            name if they stand on one line.
        group: the ranks that should hold the same; all ranks if it is None.

    Raises:
        TypeError: a part of the value is of another type, or a tensor that holds another part of
            the whole on each rank.
        ValueError: the value has more than 65,536 parts.
    """
    if not dist.is_initialized() or cast(object, group) == _NO_MEMBER:
        return
    tell = getattr(dist.group.WORLD, "same", None)
    members = dist.get_process_group_ranks(group)
    if tell is None or dist.get_rank() not in members:
        return
    held = [SameValue(key[-NAME:], *part) for key, part in islice(parts(value), _MOST + 1)]
    if len(held) > _MOST:
        raise ValueError(f"same compares values of up to {_MOST:,} parts, and this has more")
    file, line, _ = line_here()
    tell(Same(members, name[:NAME], held, file, line))


def digest(tensor: torch.Tensor) -> int:
    """Return a hash of a tensor's bits and of its size, in which each element's place counts."""
    dense = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return checksum(dense) << 32 | dense.numel() % 2**31


def parts(value: Any, at: str = "") -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield where each part of a value is, with a hash of it and its text."""
    if isinstance(value, torch.nn.Module):
        value = value.state_dict()
    inner: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        inner = [(f"{at}[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        inner = [(f"{at}[{index}]", part) for index, part in enumerate(value)]
    else:
        yield at, _hashed(value)
        return
    # how many there are belongs to what is held, and says more than the first that is missing
    kind = f"{with_article(type(value).__name__)} of {len(value)}"
    yield at, (zlib.crc32(kind.encode()), kind)
    for key, part in inner:
        yield from parts(part, key)


def _hashed(value: Any) -> tuple[int, str]:
    """Return a hash of a value without parts, and its text."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        value = torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, torch.Tensor):
        return _hashed_tensor(value)
    if isinstance(value, AbstractSet):
        text = "{" + ", ".join(sorted(map(repr, value))) + "}"
    elif value is None or isinstance(value, _PLAIN):
        text = repr(value)
    else:
        raise TypeError(
            "same compares numbers, texts, tensors, arrays, modules, and lists, tuples, sets and"
            f" mappings of these; this is {with_article(type(value).__name__)}"
        )
    # bool is an int, and 1 is 1.0: the type counts as well
    return zlib.crc32(f"{type(value).__name__} {text}".encode("utf-8", "replace")), short(text)


_PLAIN = (Number, str, bytes, bytearray, torch.Size, torch.dtype, torch.device)


def _hashed_tensor(tensor: torch.Tensor) -> tuple[int, str]:
    kind = with_article(type(tensor).__name__)
    if hasattr(tensor, "to_local"):
        raise TypeError(
            f"{kind} holds another part of the whole on each rank: give same its to_local(), or its"
            " full_tensor()"
        )
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        raise TypeError(f"same compares dense tensors; this one is {tensor.layout}")
    form = f"{dtype_name(tensor.dtype)} {list(tensor.shape)}"
    if tensor.numel() <= _FEW:
        text = f"{tensor.tolist()}, {form}" if tensor.dim() else f"{tensor.item()!r}"
    else:
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        text = f"{form}, norm {float(torch.linalg.vector_norm(tensor.detach().to(wide))):.9g}"
    return zlib.crc32(form.encode()) ^ digest(tensor), short(text)
