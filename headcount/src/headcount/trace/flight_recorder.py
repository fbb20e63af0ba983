"""The dumps of PyTorch's flight recorder: read as calls by rank, and written from a record.

Every rank of a job keeps its last calls, and writes them to a file of its own when a collective
does not end in time: with NCCL by itself, else by ``torch._C._distributed_c10d._dump_fr_trace``.
The format is that of torch 2.5 and later (version 2.x of the dump): a pickled dictionary, or JSON,
with ``entries`` in the order of the calls and ``pg_config``, the groups that the rank is in.  See
https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html.
"""

from __future__ import annotations

import ast
import json
import os
import pickle
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from headcount.core.errors import RequestError
from headcount.core.events import INIT, WORLD
from headcount.core.verdict import PATH, Site
from headcount.trace.trace import Operation, Trace

__all__ = ["DumpedCall", "Dumps", "read_dumps", "write_dumps"]

#: The version of the format that is written.
VERSION = "2.10"

#: The name of the group of all ranks, in the dumps and here.
_DEFAULT = "default_pg"

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
    """A call in a dump.

    Attributes:
        rank: the rank that called.
        group: the name of the group.
        name: what was called, as torch names it, such as ``all_reduce``.
        number: its number among the group's collectives, or among its messages.
        sizes: the sizes of the tensors that were given, and their types.
        state: ``scheduled``, ``started`` or ``completed``.
        site: the line of the program, or None where the dump has none.
        peer: of a message, the rank in the group at its other end.
    """

    rank: int
    group: str
    name: str
    number: int
    sizes: str
    state: str
    site: Site | None
    peer: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the call had ended when the dump was written."""
        return self.state == "completed"


@dataclass(frozen=True)
class Dumps:
    """The dumps of a job.

    Attributes:
        calls: by rank, its calls in their order.
        groups: the members of each group, by name; of one that no dump describes, the ranks that
            have called something in it.
        cut: the ranks whose buffers no longer hold their first calls.
    """

    calls: Mapping[int, Sequence[DumpedCall]]
    groups: Mapping[str, Sequence[int]]
    cut: frozenset[int] = frozenset()

    @property
    def missing(self) -> list[int]:
        """The members of groups whose dumps are not there."""
        every = {rank for members in self.groups.values() for rank in members}
        return sorted(every - self.calls.keys())


# Reading. -------------------------------------------------------------------------


class _PlainData(pickle.Unpickler):
    """Reads dictionaries, lists, texts and numbers; a dump holds nothing else."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"a dump holds plain data, and this one {module}.{name}")


def read_dumps(folder: Path) -> Dumps:
    """Read the dumps in a folder, whose names end in the numbers of their ranks.

    Raises:
        RequestError: there are none, or a file is none.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise RequestError(f"{folder} cannot be read: {error.strerror}") from None
    found: dict[int, Path] = {}
    for name in names:
        match = re.search(r"(\d+)(?:\.\w+)?$", name)
        if match is None:
            continue
        rank = int(match[1])
        if rank in found:
            raise RequestError(
                f"{folder}: {found[rank].name} and {name} are both of rank {rank}; give a folder"
                " with the dumps of one job"
            )
        if (folder / name).is_file():
            found[rank] = folder / name
    if not found:
        raise RequestError(
            f"{folder} holds no dumps: their names end in the number of a rank, as in nccl_trace_0"
        )
    calls: dict[int, list[DumpedCall]] = {}
    groups: dict[str, Sequence[int]] = {}
    cut = set()
    for rank, path in sorted(found.items()):
        dump = _dump(path)
        try:
            described = _groups(dump.get("pg_config", {}))
            calls[rank] = [_call(rank, entry, described) for entry in dump["entries"]]
            if any(int(entry.get("record_id", 0)) > 0 for entry in dump["entries"][:1]):
                cut.add(rank)
        except (AttributeError, KeyError, SyntaxError, TypeError, ValueError) as error:
            raise RequestError(
                f"{path} is no dump of a flight recorder that is known here: {error!r}"
            ) from None
        groups |= {name: members for name, members in described.values() if members}
    for rank, made in calls.items():
        for call in made:
            if rank not in groups.get(call.group, ()):
                groups[call.group] = sorted({*groups.get(call.group, ()), rank})
    return Dumps(calls, groups, frozenset(cut))


def _groups(config: Mapping[str, Any]) -> dict[str, tuple[str, list[int]]]:
    """Return the groups of a rank by torch's names: how they are called here, and their members.

    Several groups of a mesh share a description, and each rank has another one of them.
    """
    found = {}
    for one in config.values():
        name, description = str(one.get("name", "")), str(one.get("desc", ""))
        members = list(ast.literal_eval(str(one.get("ranks") or "[]")))
        called = _group(name, description)
        if members and called != _DEFAULT:
            called = f"{called} of ranks {', '.join(map(str, members))}"
        found[name] = called, members
    return found


def _dump(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    try:
        if data.lstrip()[:1] == b"{":
            dump = json.loads(data)
        else:
            with path.open("rb") as file:
                dump = _PlainData(file).load()
        if isinstance(dump["entries"], list):
            return dict(dump)
    except (pickle.UnpicklingError, ValueError, EOFError, KeyError, TypeError, IndexError) as error:
        raise RequestError(f"{path} is no dump of a flight recorder: {error}") from None
    raise RequestError(f"{path} is no dump of a flight recorder: its entries are no list")


def _group(name: str, description: str) -> str:
    if description == _DEFAULT:
        return description
    return f"group {name}" + (f" ({description})" if description not in ("", "undefined") else "")


def _call(
    rank: int, entry: Mapping[str, Any], groups: Mapping[str, tuple[str, list[int]]]
) -> DumpedCall:
    own, description = map(str, entry.get("process_group", ("", ""))[:2])
    name = str(entry.get("profiling_name", "")).partition(":")[2]
    message = _MESSAGE.match(name)
    number = entry.get("p2p_seq_id" if message else "collective_seq_id", 0)
    sizes = f"{entry.get('input_sizes')} {'/'.join(map(str, entry.get('input_dtypes') or []))}"
    return DumpedCall(
        rank,
        groups[own][0] if own in groups else _group(own, description),
        message[1] if message else name,
        int(number),
        sizes.strip(),
        str(entry.get("state", "")),
        _site(entry.get("frames") or []),
        int(message[3]) if message else None,
    )


def _site(frames: Sequence[Mapping[str, Any]]) -> Site | None:
    """Return the innermost line that is not a library's, as far as its name tells."""
    libraries = ("/torch/", "/site-packages/", "/dist-packages/", "<frozen", "/lib/python")
    for frame in frames:
        file = str(frame.get("filename", ""))
        if file.endswith(".py") and not any(part in file for part in libraries):
            return Site(f"{PATH}{file}", int(frame.get("line", 0)))
    return None


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
                "desc": _DEFAULT if name == WORLD else name,
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
        dump = {"version": VERSION, "pg_config": config, "pg_status": {}, "entries": entries}
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
