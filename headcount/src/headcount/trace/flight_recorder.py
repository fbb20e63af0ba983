"""The dumps of PyTorch's flight recorder: read as calls by rank, and written from a record.

Every rank of a job keeps its last calls, and writes them to a file of its own when a collective
does not end in time: with NCCL by itself, else by ``torch._C._distributed_c10d._dump_fr_trace``.
The format is that of torch 2.5 and later (version 2.x of the dump): a pickled dictionary, or JSON,
with ``entries`` in the order of the calls and ``pg_config``, the groups that the rank is in.  See
https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html.
"""

from __future__ import annotations

import glob
import io
import json
import math
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Meta

from headcount.core.errors import RequestError
from headcount.core.events import INIT, WORLD
from headcount.core.verdict import PATH, Site, folded
from headcount.trace.trace import Operation, Trace

__all__ = [
    "DEFAULT_GROUP",
    "DumpEntry",
    "DumpedCall",
    "Dumps",
    "gloo_dumps",
    "is_library",
    "printable",
    "read_dumps",
    "write_dumps",
]

#: The version of the format that is written.
VERSION = "2.10"

#: What our dumps have in a field of their own.
_OURS = "headcount"

#: The name of the group of all ranks, in the dumps and here.
DEFAULT_GROUP = "default_pg"

#: How torch names the collectives whose names differ.
_NAMES = {"all_gather": "_all_gather_base", "reduce_scatter": "_reduce_scatter_base"}

#: How torch names the types of elements.
_DTYPES = {
    "float32": "Float",
    "float64": "Double",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "int64": "Long",
    "int32": "Int",
    "int16": "Short",
    "int8": "Char",
    "uint8": "Byte",
    "bool": "Bool",
}

_MESSAGE = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+)$")


@dataclass(frozen=True)
class DumpedCall:
    """A call in a dump; a batch of messages or of collectives is one call.

    Attributes:
        rank: the rank that called.
        group: the name of the group.
        name: what was called, as torch names it, such as ``all_reduce``.
        number: its number among the group's collectives, or among its messages.
        sizes: the sizes of the tensors that were given, and their types.
        elements: how many elements each of these tensors has.
        is_complete: whether it had ended when the dump was written.
        is_started: whether its rank's device had begun it; of gloo nobody knows.
        site: the line of the program, or None where the dump has none.
        messages: of a message or a batch of them, ``send`` or ``recv`` and the rank at the other
            end, by its place in the group.
        created: when it was called, in nanoseconds by its machine's clock; 0 if that is not known.
        ended: when it was seen to have ended, likewise; gloo's recorder does not note that.
    """

    rank: int
    group: str
    name: str
    number: int
    sizes: str
    elements: tuple[int, ...]
    is_complete: bool
    is_started: bool
    site: Site | None
    messages: tuple[tuple[str, int], ...] = ()
    created: int = 0
    ended: int = 0


@dataclass(frozen=True)
class Dumps:
    """The dumps of a job.

    Attributes:
        calls: by rank, its calls in their order.
        groups: the members of each group, by name; of one that no dump describes, the ranks that
            have called something in it.
        described: the groups whose members are all known.
        cut: the ranks whose buffers no longer hold their first calls.
        unread: why files could not be read, one sentence each.
        has_messages: whether messages are recorded; torch's recorder of gloo leaves them out.
    """

    calls: Mapping[int, Sequence[DumpedCall]]
    groups: Mapping[str, Sequence[int]]
    described: frozenset[str] = frozenset()
    cut: frozenset[int] = frozenset()
    unread: tuple[str, ...] = ()
    has_messages: bool = True

    @property
    def missing(self) -> list[int]:
        """The members of groups whose dumps are not there."""
        every = {rank for members in self.groups.values() for rank in members}
        return sorted(every - self.calls.keys())


# Reading. -------------------------------------------------------------------------

#: A number of the recorder's, and that of a rank.
_Number = Annotated[int, Meta(ge=-1, le=1 << 53)]
_Rank = Annotated[int, Meta(ge=0, lt=1 << 20)]


class _Frame(msgspec.Struct):
    filename: str = ""
    line: int = 0


class DumpEntry(msgspec.Struct):
    """A call as torch's recorder has it, by torch's names; what is not needed is passed over."""

    profiling_name: str
    process_group: tuple[str, str]
    collective_seq_id: _Number = 0
    p2p_seq_id: _Number = 0
    record_id: _Number = 0
    is_p2p: bool | None = None
    input_sizes: list[list[int]] | None = None
    input_dtypes: list[str] | None = None
    state: str | None = None
    retired: bool = False
    time_created_ns: Annotated[int, Meta(ge=0, le=1 << 62)] = 0
    time_discovered_completed_ns: Annotated[int, Meta(ge=0, le=1 << 62)] | None = None
    frames: list[_Frame] | None = None


class _Config(msgspec.Struct):
    name: str = ""
    desc: str = ""
    ranks: str = "[]"


class _Dump(msgspec.Struct):
    entries: list[DumpEntry]
    pg_config: dict[str, _Config] = {}
    recorder: str = ""


class _PlainData(pickle.Unpickler):
    """Reads dictionaries, lists, texts and numbers; a dump holds nothing else."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"a dump holds plain data, and this one {module}.{name}")


def read_dumps(places: Sequence[str | Path]) -> Dumps:
    """Read the dumps of a job, whose files' names end in the numbers of their ranks.

    A file that cannot be read is left out, as one that a rank was killed over.

    Args:
        places: folders, files and patterns of files.

    Raises:
        RequestError: none is there, none can be read, or they are of several jobs.
    """
    dumps: dict[int, _Dump] = {}
    groups: dict[str, Sequence[int]] = {}
    calls: dict[int, list[DumpedCall]] = {}
    unread, known = [], set()
    for rank, path in _files(places):
        try:
            dump = _dump(path)
            described = _groups(dump.pg_config)
        except ValueError as error:
            unread.append(printable(f"{path} is no dump of a flight recorder: {error}"))
            continue
        if rank in dumps:
            raise RequestError(f"{path} is the second of rank {rank}; give the dumps of one job")
        dumps[rank] = dump
        calls[rank] = _calls(rank, dump.entries, described)
        known |= {rank, *(member for _, members in described.values() for member in members)}
        for key, (name, members) in described.items():
            # gloo's recorder describes one group, and does not say which
            if key and members and groups.setdefault(name, members) != members:
                raise RequestError(
                    f"{name} has {len(members)} members in {path}, and {len(groups[name])} in an"
                    " earlier file; give the dumps of one job"
                )
    if not dumps:
        raise RequestError(
            unread[0] + f" (and {len(unread) - 1} more like it)" * (len(unread) > 1)
            if unread
            else f"{', '.join(map(str, places))}: no dumps are there; their names end in the number"
            " of a rank, as in nccl_trace_0"
        )
    groups.setdefault(DEFAULT_GROUP, range(max(known) + 1))
    described_groups = frozenset(groups)
    _add_callers(groups, calls)
    gloos = any(
        entry.profiling_name.startswith("gloo:")
        for dump in dumps.values()
        if dump.recorder != _OURS
        for entry in dump.entries
    )
    cut = {rank for rank, dump in dumps.items() if dump.entries and dump.entries[0].record_id > 0}
    return Dumps(calls, groups, described_groups, frozenset(cut), tuple(unread), not gloos)


def gloo_dumps(
    entries: Mapping[int, Sequence[DumpEntry]], members: Mapping[str, Sequence[int]]
) -> Dumps:
    """Return what the gloo recorders of live ranks hold, as if they had dumped it.

    Args:
        entries: by rank, its calls in their order.
        members: the groups whose members are known, by torch's names, ``0`` the default group.
    """
    named = {"0": DEFAULT_GROUP}
    named |= dict(entry.process_group for made in entries.values() for entry in made)
    known = {
        own: (_full_name(own, named.get(own, ""), ranks), [*ranks])
        for own, ranks in members.items()
    }
    calls = {rank: _calls(rank, made, known) for rank, made in sorted(entries.items())}
    groups: dict[str, Sequence[int]] = dict(known.values())
    described = frozenset(groups)
    _add_callers(groups, calls)
    cut = {rank for rank, made in entries.items() if made and made[0].record_id > 0}
    return Dumps(calls, groups, described, frozenset(cut), (), False)


def _add_callers(
    groups: dict[str, Sequence[int]], calls: Mapping[int, Sequence[DumpedCall]]
) -> None:
    """Let the ranks that have called something in a group be members of it."""
    for rank, made in calls.items():
        for group in dict.fromkeys(call.group for call in made):
            if rank not in groups.get(group, ()):
                groups[group] = sorted({*groups.get(group, ()), rank})


def _files(places: Sequence[str | Path]) -> list[tuple[int, Path]]:
    """Return the files that may be dumps, with their ranks.

    Raises:
        RequestError: a place is not there, or a file bears no number.
    """
    found = set()
    for place in map(str, places):
        path = Path(place)
        try:
            named = [*path.iterdir()] if path.is_dir() else [path]
            if place and not path.exists():
                named = [Path(one) for one in glob.glob(place)]
            files = [one for one in named if one.is_file()] if place else []
        except OSError as error:
            raise RequestError(f"{place[:200]} cannot be read: {error.strerror}") from None
        if not files and not (place and path.is_dir()):
            raise RequestError(f"{place!r}: there is no such folder or file")
        for one in files:
            match = re.search(r"(?<![-\d])(\d{1,6})(?:\.\w+)?$", one.name)
            if match is not None:
                found.add((int(match[1]), one))
            elif not path.is_dir():
                raise RequestError(f"{one}: its name does not end in the number of a rank")
    return sorted(found)


def _groups(config: Mapping[str, _Config]) -> dict[str, tuple[str, list[int]]]:
    """Return the groups of a rank by torch's names: how they are called here, and their members.

    Several groups of a mesh share a description, and each rank has another one of them.

    Raises:
        ValueError: the members are no list of ranks.
    """
    found = {}
    for one in config.values():
        members = msgspec.json.decode(one.ranks or "[]", type=list[_Rank])
        found[one.name] = _full_name(one.name, one.desc, members), members
    return found


def _full_name(name: str, description: str, members: Sequence[int]) -> str:
    called = _group(name, description)
    return f"{called} of {folded(members)}" if members and called != DEFAULT_GROUP else called


def _dump(path: Path) -> _Dump:
    """Return what a file holds.

    Raises:
        ValueError: it is no dump, or a part of one.
    """
    try:
        data = path.read_bytes()
        pickled = data.startswith(b"\x80")
        dump = _PlainData(io.BytesIO(data)).load() if pickled else json.loads(data)
    except OSError as error:
        raise ValueError(error.strerror) from None
    except Exception as error:  # whatever a pickle that was cut off, or is none, may raise
        raise ValueError(str(error) or type(error).__name__ if data else "it is empty") from None
    return msgspec.convert(dump, _Dump, strict=False)


def _group(name: str, description: str) -> str:
    if description == DEFAULT_GROUP:
        return description
    more = f" ({description})" if description not in ("", "undefined") else ""
    return printable(f"group {name}{more}")


def printable(text: str) -> str:
    """Return a text of somebody else's without what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _calls(
    rank: int, entries: Sequence[DumpEntry], groups: Mapping[str, tuple[str, list[int]]]
) -> list[DumpedCall]:
    """Return the calls of a rank, batches in the place of their parts.

    Of a batch torch records the parts, all with one number, and then the whole, which alone learns
    when it has started and ended.
    """
    made: dict[object, list[DumpedCall]] = {}
    for place, entry in enumerate(entries):
        call = _call(rank, entry, groups)
        is_message = bool(call.messages) if entry.is_p2p is None else entry.is_p2p
        number = entry.p2p_seq_id if is_message else entry.collective_seq_id
        key = call.group, is_message, number
        if call.name.endswith("coalesced") and key in made:
            parts = made.pop(key)
            kind = f"message{'s' * (len(parts) > 1)}" if is_message else parts[0].name
            whole = replace(
                call,
                name=f"a batch of {len(parts)} {kind}",
                sizes="; ".join(part.sizes for part in parts),
                elements=tuple(count for part in parts for count in part.elements),
                site=parts[0].site,
                messages=tuple(one for part in parts for one in part.messages),
            )
            made[place] = [whole]
        else:
            made.setdefault(key, []).append(call)
    return [call for parts in made.values() for call in parts]


def _call(rank: int, entry: DumpEntry, groups: Mapping[str, tuple[str, list[int]]]) -> DumpedCall:
    own, description = entry.process_group
    name = printable(entry.profiling_name.partition(":")[2])
    message = _MESSAGE.match(name)
    sizes = f"{entry.input_sizes} {'/'.join(entry.input_dtypes or [])}"
    return DumpedCall(
        rank,
        groups[own][0] if own in groups else _group(own, description),
        message[1] if message else name,
        entry.p2p_seq_id if message else entry.collective_seq_id,
        printable(sizes.strip()),
        tuple(math.prod(size) for size in entry.input_sizes or []),
        # gloo's recorder leaves the state as it was, and notes only that the call is over
        entry.state == "completed" or entry.retired,
        entry.state == "started",
        _site(entry.frames or []),
        ((message[1], int(message[3])),) if message else (),
        entry.time_created_ns,
        entry.time_discovered_completed_ns or 0,
    )


def _site(frames: Sequence[_Frame]) -> Site | None:
    """Return the innermost line that is not a library's, as far as its name tells."""
    for frame in frames:
        if frame.filename.endswith(".py") and not is_library(frame.filename):
            return Site(f"{PATH}{printable(frame.filename)}", frame.line)
    return None


def is_library(filename: str) -> bool:
    """Return whether a file of a job that may run elsewhere is a library's, by its name alone."""
    libraries = ("/torch/", "/site-packages/", "/dist-packages/", "<frozen", "/lib/python")
    return any(one in filename for one in libraries)


# Writing. -------------------------------------------------------------------------


def write_dumps(trace: Trace, folder: Path) -> None:
    """Write the record of a run as its ranks' flight recorders would, one file for each rank.

    Args:
        trace: the record.
        folder: gets the files ``rank_0``, ``rank_1`` and so on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    groups = {WORLD: range(trace.world_size), **trace.groups}
    groups.pop(INIT, None)  # torch's recorder does not know of it
    numbers = {name: number for number, name in enumerate(groups)}
    for rank, operations in enumerate(trace.operations):
        config = {
            str(numbers[name]): {
                "name": str(numbers[name]),
                "desc": DEFAULT_GROUP if name == WORLD else name,
                "ranks": str(list(members)),
            }
            for name, members in groups.items()
            if rank in members
        }
        # the record of a long run has lost its beginning, on each rank another part
        collectives: dict[str, int] = {}
        messages: dict[str, int] = {}
        entries: list[dict[str, Any]] = []
        made = 0
        for op in operations:
            if op.makes_group:
                made += 1
                continue
            if op.is_message:
                messages[op.group] = messages.get(op.group, 0) + 1
            else:
                # the first call in any other group is the one that makes it
                collectives[op.group] = op.place + (op.group == WORLD)
            entry = _entry(trace, op, list(groups[op.group]))
            name = str(numbers[op.group])
            entries.append(
                {
                    "record_id": op.number - made,
                    "pg_id": numbers[op.group],
                    "process_group": (name, config[name]["desc"]),
                    "collective_seq_id": collectives.get(op.group, 0),
                    "p2p_seq_id": messages.get(op.group, 0),
                    "op_id": op.number - made + 1,
                    **entry,
                }
            )
        dump = {
            "version": VERSION, "recorder": _OURS,
            "pg_config": config, "pg_status": {}, "entries": entries,
        }  # fmt: skip
        (folder / f"rank_{rank}").write_bytes(pickle.dumps(dump))


def _entry(trace: Trace, op: Operation, members: list[int]) -> dict[str, Any]:
    """Return what an entry says of the call itself."""
    if op.is_message:
        peer = members.index(op.peer) if op.peer in members else -1
        towards = "->" if op.kind == "send" else "<-"
        name = f"{op.kind} {members.index(op.rank)}{towards}{peer}"
    else:
        name = _NAMES.get(op.kind, op.kind)
    given = op.count or trace.given(op) or 1
    taken = given
    if op.kind == "all_gather":
        taken = given * len(members)
    elif op.kind == "reduce_scatter":
        taken = given // len(members)
    found = op.dtype or next((one.dtype for one in op.signatures), "float32")
    dtype = _DTYPES.get(found, found)
    state = "completed" if op.done is not None else "started" if op.matched else "scheduled"
    return {
        "profiling_name": f"gloo:{name}",
        "time_created_ns": op.posted,
        "input_sizes": [[given]],
        "output_sizes": [[taken]],
        "input_dtypes": [dtype],
        "output_dtypes": [dtype],
        "state": state,
        "is_p2p": op.is_message,
        "retired": op.done is not None,
        "timeout_ms": 1_800_000,
        "time_discovered_started_ns": op.posted if op.matched else None,
        "time_discovered_completed_ns": op.done,
        "frames": [{"name": "<module>", "filename": op.site.path, "line": op.site.line}],
    }
