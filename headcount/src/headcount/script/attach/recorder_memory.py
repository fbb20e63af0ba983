"""Torch's flight recorder of gloo, read from the memory of a live rank.

The recorder is on by default, and a rank that hangs can no longer be asked to dump it.  Where its
parts lie in memory is torch's own affair; so :func:`check_layout` first reads the recorder of this
very process, and compares it with torch's own dump of it.  A rank is read only if its torch is the
same build as the one that was checked.
"""

from __future__ import annotations

import itertools
import json
import operator
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headcount.script.attach.process_memory import Memory, UnknownLayout, library_of, offset_of
from headcount.trace.flight_recorder import DumpEntry

__all__ = ["KnownRecorder", "Layout", "check_layout", "read_recorder"]

_LIBRARY = "libtorch_cpu.so"

#: The recorder: a static variable of a function, which is in ``.symtab`` alone.
_SYMBOL = b"_ZZN4c10d14FlightRecorderIN3c105EventEE3getEvE8instance"

#: Where the parts of a recorder itself lie, in bytes, and how many of it are read.
_ENABLED, _ENTRIES, _CAPACITY, _RECORDER = 0, 48, 72, 96

#: What is read of an entry.
_READ = operator.attrgetter(
    *("profiling_name", "process_group", "collective_seq_id", "record_id", "input_sizes"),
    *("retired", "time_created_ns"),
)

#: How often a recorder is read until two readings of it are alike.
_TRIES = 5


@dataclass(frozen=True)
class Layout:
    """Where the parts of an entry lie, in bytes from its begin; ``dimensions`` of each tensor that
    goes in, and ``sizes`` of all tensors.
    """

    description: int = 24
    group: int = 56
    number: int = 88
    name: int = 112
    created: int = 176
    dimensions: int = 240
    sizes: int = 384
    retired: int = 504
    length: int = 512


@dataclass(frozen=True)
class KnownRecorder:
    """A recorder that has been proved to be read rightly.

    Attributes:
        layout: where the parts of an entry lie.
        offset: where the recorder is in torch's library.
        library: the library.
    """

    layout: Layout
    offset: int
    library: Path


def _build_of(library: Path) -> tuple[int, str]:
    """Return what tells one build of torch from another: its size, and its version with commit."""
    version = library.parent.parent / "version.py"
    return library.stat().st_size, version.read_text(encoding="utf-8")


def _blocks(memory: Memory, base: int, known: KnownRecorder) -> tuple[int, list[bytes]]:
    """Return where the entries of a recorder begin, and their bytes."""
    length = known.layout.length
    (recorder,) = struct.unpack("<Q", memory.read(base + known.offset, 8))
    if not recorder:
        return 0, []  # it is made by the first call
    head = memory.read(recorder, _RECORDER)
    first, end = struct.unpack_from("<QQ", head, _ENTRIES)
    (capacity,) = struct.unpack_from("<Q", head, _CAPACITY)
    if not head[_ENABLED]:
        raise UnknownLayout("its recorder is off: TORCH_FR_BUFFER_SIZE is 0")
    if not 0 <= end - first <= min(capacity, 10**6) * length or (end - first) % length:
        raise UnknownLayout("torch's recorder has another layout")
    data = memory.read(first, end - first) if end > first else b""
    return first, [data[at : at + length] for at in range(0, len(data), length)]


def _read(
    pid: int, base: int, known: KnownRecorder, seen: dict[bytes, DumpEntry]
) -> list[DumpEntry]:
    """Return the calls in a recorder, once all of it has stood still for as long as that takes.

    Args:
        seen: entries by their bytes, of which no two calls have the same.
    """
    before: list[bytes] | None = None
    why: Exception
    moves = UnknownLayout("its recorder moves too fast to be read")
    with Memory(pid) as memory:
        for _ in range(_TRIES):
            first, blocks = _blocks(memory, base, known)
            if blocks == before and seen.keys() >= {*blocks}:
                made = {block: seen[block] for block in blocks}
                seen.clear()
                seen.update(made)
                return sorted(made.values(), key=lambda entry: entry.record_id)
            try:
                for place, block in enumerate(blocks):
                    if block not in seen:
                        start = first + place * known.layout.length
                        seen[block] = _entry(memory, block, start, known.layout)
                why = moves
            except (UnknownLayout, OSError) as error:
                why = error  # that it was half written is one reason
            before = blocks
    raise why


def _entry(memory: Memory, block: bytes, start: int, layout: Layout) -> DumpEntry:
    number, record, created = (
        struct.unpack_from("<Q", block, at)[0] for at in (layout.number, 0, layout.created)
    )
    if max(number, record) > 1 << 53 or created > 1 << 62:
        raise UnknownLayout("a number in torch's recorder is none")
    dimensions = memory.numbers(block, layout.dimensions, start)
    sizes = iter(memory.numbers(block, layout.sizes, start))
    return DumpEntry(
        memory.text(block, layout.name, start),
        (memory.text(block, layout.group, start), memory.text(block, layout.description, start)),
        collective_seq_id=number,
        record_id=record,
        input_sizes=[list(itertools.islice(sizes, max(count, 0))) for count in dimensions],
        retired=block[layout.retired] == 1,
        time_created_ns=created,
    )


def read_recorder(
    pid: int, known: KnownRecorder, seen: dict[bytes, DumpEntry] | None = None
) -> list[DumpEntry]:
    """Return the collectives that a rank's recorder holds, oldest first.

    Args:
        pid: the process of the rank.
        known: how its recorder is read.
        seen: what an earlier reading of it has left, which need not be read again; is replaced.

    Raises:
        UnknownLayout: it cannot be read, for a reason that holds for as long as the rank lives.
        OSError: the system does not let this process read it.
    """
    found = library_of(pid, _LIBRARY)
    if found is None:
        return []  # without torch, nothing has been called
    base, path = found
    if _build_of(path) != _build_of(known.library):
        version = _build_of(path)[1].partition("__version__ = ")[2].partition("\n")[0]
        raise UnknownLayout(
            f"the rank has another build of torch ({version[:40]}) than headcount: install"
            " headcount beside it"
        )
    return _read(pid, base, known, {} if seen is None else seen)


def check_layout(layout: Layout = Layout()) -> KnownRecorder:
    """Prove on calls of this process that the recorder lies where it is read.

    It needs ``torch.distributed`` for itself, once.

    Raises:
        UnknownLayout: it lies elsewhere in this version of torch, or calls cannot be made here.
    """
    os.environ["TORCH_FR_BUFFER_SIZE"] = "8"  # before torch asks; it wraps around below
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import _dump_fr_trace_json  # type: ignore[attr-defined]
    from torch.distributed import HashStore  # type: ignore[attr-defined]

    library = library_of(os.getpid(), _LIBRARY)
    if library is None:
        raise UnknownLayout("this process has no torch on which the reading could be tried")
    known = KnownRecorder(layout, offset_of(library[1], _SYMBOL), library[1])
    hook = sys.excepthook  # torch puts its own there
    try:
        dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
        # texts that fit into an entry and such that do not, and tensors of several dimensions
        for group in (None, dist.new_group([0], group_desc="a group with a long description")):
            dist.broadcast(torch.ones(3, 2, 4), 0, group)
            dist.reduce_scatter(torch.ones(2), [torch.ones(2)], group=group)
            dist.barrier(group)
            dist.all_reduce(torch.ones(5, dtype=torch.int64), group=group)
            dist.all_gather([torch.ones(())], torch.ones(()), group=group)
        del group
        dist.destroy_process_group()  # ends the threads that note when a call has ended
        expected = msgspec.convert(json.loads(_dump_fr_trace_json())["entries"], list[DumpEntry])
        found = _read(os.getpid(), library[0], known, {})
    except (RuntimeError, ValueError, KeyError) as error:
        raise UnknownLayout(f"torch's recorder here cannot be read: {error}") from None
    finally:
        sys.excepthook = hook
    if [*map(_READ, found)] != [*map(_READ, expected)] or len(found) != 8:
        raise UnknownLayout(
            f"the recorder of torch {torch.__version__} has a layout that is not known here"
        )
    return known
