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
            the whole on each rank; or the name is no text.
        ValueError: the value has more than 65,536 parts.
    """
    if not dist.is_initialized() or cast(object, group) == _NO_MEMBER:
        return
    tell = getattr(dist.group.WORLD, "same", None)
    members = dist.get_process_group_ranks(group)
    if tell is None or dist.get_rank() not in members:
        return
    if not isinstance(name, str):
        raise TypeError(
            f"same takes a name second, and this is {with_article(type(name).__name__)}: give the"
            " group as same(value, group=group)"
        )
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
        yield at, _hashed(value, at)
        return
    # how many there are belongs to what is held, and says more than the first that is missing
    kind = f"{with_article(type(value).__name__)} of {len(value)}"
    yield at, (zlib.crc32(kind.encode()), kind)
    for key, part in inner:
        yield from parts(part, key)


def _hashed(value: Any, at: str) -> tuple[int, str]:
    """Return a hash of a value without parts, and its text."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        value = torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, torch.Tensor):
        return _hashed_tensor(value, at)
    if isinstance(value, AbstractSet):
        text = "{" + ", ".join(sorted(map(repr, value))) + "}"
    elif value is None or isinstance(value, _PLAIN):
        text = repr(value)
    else:
        raise _refused(value, at, "a text or numbers that say the same, such as str(x) or vars(x)")
    # bool is an int, and 1 is 1.0: the type counts as well
    return zlib.crc32(f"{type(value).__name__} {text}".encode("utf-8", "replace")), short(text)


def _refused(value: Any, at: str, mend: str) -> TypeError:
    kind = with_article(type(value).__name__)
    held = [
        str(getattr(value, one)) for one in ("layout", "dtype", "device") if hasattr(value, one)
    ]
    kind += f" of {', '.join(held)}" * bool(held)
    return TypeError(
        "same compares numbers, texts, dense tensors, arrays of numbers, modules, and lists,"
        f" tuples, sets and mappings of these; {at or 'this'} is {kind}: give same {mend}"
    )


_PLAIN = (Number, str, bytes, bytearray, torch.Size, torch.dtype, torch.device)


def _hashed_tensor(tensor: torch.Tensor, at: str) -> tuple[int, str]:
    if hasattr(tensor, "to_local"):  # and holds another part of the whole on each rank
        raise _refused(tensor, at, "its to_local(), or its full_tensor()")
    special = tensor.is_quantized or tensor.is_meta or tensor.is_nested
    if special or tensor.layout is not torch.strided:
        raise _refused(tensor, at, "a dense tensor of its contents")
    form = f"{dtype_name(tensor.dtype)} {list(tensor.shape)}"
    if tensor.numel() <= _FEW:
        text = f"{tensor.tolist()}, {form}" if tensor.dim() else f"{tensor.item()!r}"
    else:
        wide = torch.complex128 if tensor.is_complex() else torch.float64
        text = f"{form}, norm {float(torch.linalg.vector_norm(tensor.detach().to(wide))):.9g}"
    return zlib.crc32(form.encode()) ^ digest(tensor), short(text)
