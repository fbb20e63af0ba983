"""Drawn messages and values, as Python source that makes them.

A message is drawn by the types of its fields, from :data:`headcount.core.wire.FromRank`, so one
that is added to the wire is attacked without a line here.
"""

from __future__ import annotations

import random
import types
import typing
from typing import Any

import msgspec

from headcount.core.wire import FromRank, Returned

__all__ = ["PRELUDE", "Source", "answer", "flood", "message", "value"]


class Source(str):
    """Python source of a value, where its literal would be too long."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


#: What the drawn sources use.
PRELUDE = '''
import struct

import msgspec
import torch

PRIME = 2**61 - 1


def node(value):
    """A value as an answer holds it."""
    return msgspec.msgpack.encode(value)


def collide(count):
    """Pairs of numbers that all have one hash, by the xxHash that Python uses for tuples."""
    size = 1 << 64
    one, two, five = 11400714785074694791, 14029467366897019727, 2870177450012600261
    inverse, pairs, first = pow(two, -1, size), [], 0
    while len(pairs) < count:
        first += 1
        total = (five + first * two) % size
        second = (12345 - (total << 31 | total >> 33) * one) * inverse % size
        if second < PRIME:
            pairs.append((first, second))
    return pairs


def mapping(keys):
    """A MessagePack map with these keys, which may be lists there."""
    return b"\\xdf" + struct.pack(">I", len(keys)) + b"".join(node(key) + b"\\0" for key in keys)


def within(depth, inner):
    """Lists in lists."""
    return b"\\x91" * depth + inner
'''

#: Whole numbers at which something begins or ends.
_NUMBERS = (0, 1, -1, 2, 7, 99, 2**31, -(2**31), 2**53, 2**62, 2**63 - 1, -(2**63))

_TEXTS = (
    "", "world", "send", "recv", "all_reduce", "barrier", "new_group", "call", "load", "join",
    "simulate", "pack", "float32", "bits8", "deadlock", "tampering", "no_overlap", "SUM", "0", "-1",
    "\x00", "\x1b[2J", "=1+1", "<script>", "../../etc", "\u202e", "Cannot allocate memory",
    Source('"x" * 300'), Source('"x " * 1_000_000'), Source('"x" * 30_000_000'),
)  # fmt: skip

_DTYPES = (
    "float32", "float64", "int64", "bool", "bfloat16", "complex64", "bits8", "bits1x8", "uint4",
    "quint8", "float8_e8m0fnu", "float4_e2m1fn_x2", "nothing", "",
)  # fmt: skip

_SHAPES: tuple[Any, ...] = (
    [], [0], [2], [3], [-1], [2, -1], [1 << 40, 0], [0, 1 << 40], [1 << 14, 1 << 14], [1 << 20] * 2,
    [1 << 40] * 2, [2**63 - 1], [1] * 65, "33", [2.0], [True], None,
)  # fmt: skip

#: Nodes of an answer that are not drawn by their kind, as source.
_NODES = (
    '{"set": [{"int": str(k * PRIME)} for k in range(1, 60_000)]}',
    '{"dict": [[{"int": str(k * PRIME)}, 0] for k in range(1, 60_000)]}',
    '{"set": [{"tuple": list(pair)} for pair in collide(50_000)]}',
    '{"set": [{"float": "nan"}] * 90_000}',
    '{"set": [[]]}',
    '{"dict": [[{"tensor": ["int64", [1], bytes(8)]}, 1], [None, {"device": "meta"}]]}',
    '{"int": "9" * 4_300}',
    '{"int": "9" * 10_000_000}',
    '{"int": 1e308}',
    '{"float": "0x" + "f" * 10_000_000}',
    '{"float": "inf"}',
    '{"tuple": "x" * 1_000_000}',
    '{"tuple": {"tuple": [1]}}',
    '{"device": "cuda:99999999999999999999"}',
    '{"device": "hpu"}',
    '{"dtype": "bits8"}',
    '{"reduction": "SUM"}',
    '{"opaque": ["", ""]}',
    '{"opaque": ["x " * 5_000_000, {"a": 1}]}',
    '{"unknown": 1, "tensor": 2}',
    "{}",
    '"x " * 10_000_000',
    "list(range(1_000_000))",
    '{"tensor": ["uint8", [1], 10**12]}',
    '{"tensor": ["float64", [1 << 40, 0], b""]}',
    '{"tensor": ["bool", [8], bytes(range(8))]}',
)

#: The same as bytes, where no encoder would make them.
_BYTES = (
    'b"\\xdd" + struct.pack(">I", 5_000_000) + b"\\x90" * 5_000_000',
    'b"\\xdd" + struct.pack(">I", 5_000_000) + b"\\x81\\xa5tuple\\x90" * 5_000_000',
    "mapping(collide(40_000))",
    "mapping([[pair, 1] for pair in collide(10_000)])",
    'within(5_000_000, b"\\x90")',
    'within(16, b"\\xc0")',
    'b"\\xdf\\xff\\xff\\xff\\xff"',
    'b"\\xc7\\xff\\xff" + bytes(255)',
    'b"\\xd7\\xff" + bytes(8)',
    'b"\\xcb\\x7f\\xf8\\0\\0\\0\\0\\0\\1"',
    'b""',
)


def value(draw: random.Random) -> Source:
    """Draw a packed value, which an answer may hold in the place of its result."""
    kind = draw.randrange(4)
    if kind == 0:
        return Source(draw.choice(_BYTES))
    if kind == 1:
        return Source(f"node({draw.choice(_NODES)})")
    name, shape = draw.choice(_DTYPES), draw.choice(_SHAPES)
    octets = draw.choice(('b""', "bytes(8)", "bytes(1_000_000)", "8", "10**12", '"text"', "[1]"))
    large = f'{{"large": [{name!r}, {shape!r}]}}'
    one = large if kind == 2 else f'{{"tensor": [{name!r}, {shape!r}, {octets}]}}'
    around = draw.choice(("{}", "[{}] * 3", '{{"tuple": [1, {}]}}', '{{"dict": [["result", {}]]}}'))
    return Source(f"node({around.format(one)})")


def answer(draw: random.Random) -> Source:
    """Draw an answer with an odd result, or odd arguments."""
    fields = {"value": value(draw), "arguments": Source('node({"tuple": []})'), "aliases": []}
    if draw.random() < 0.3:
        fields["arguments"] = value(draw)
    return _message(Returned, draw, fields)


def message(draw: random.Random) -> Source:
    """Draw a message of any kind, each field by its type."""
    return _message(draw.choice(typing.get_args(FromRank)), draw, {})


def flood(draw: random.Random) -> Source:
    """Draw a stretch of messages that is sent many times."""
    return Source(f"{_listed([message(draw) for _ in range(draw.randint(1, 3))])} * 2_000")


def _message(kind: type[Any], draw: random.Random, fields: dict[str, Any]) -> Source:
    """Draw a message as the list that the wire makes of it, with some fields given."""
    hints = typing.get_type_hints(kind)
    parts = [kind.__struct_config__.tag]
    for name in kind.__struct_fields__:
        parts.append(fields[name] if name in fields else _drawn(hints[name], draw))
    if draw.random() < 0.1:
        del parts[draw.randrange(len(parts)) :]
    return Source(_listed(parts))


def _listed(parts: list[Any]) -> str:
    return f"[{', '.join(map(repr, parts))}]"


def _drawn(hint: Any, draw: random.Random, depth: int = 0) -> Any:
    """Draw something of a type, mostly small, sometimes odd."""
    origin, given = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _drawn(draw.choice(given), draw, depth)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _message(hint, draw, {}) if hint.__struct_config__.tag else _untagged(hint, draw)
    if origin in (list, tuple):
        if origin is tuple and Ellipsis not in given:
            return Source(_listed([_drawn(one, draw, depth + 1) for one in given]))
        count = draw.choice((0, 1, 1, 2, 5))
        items = _listed([_drawn(given[0], draw, depth + 1) for _ in range(count)])
        return Source(f"{items} * 100_000" if draw.random() < 0.05 and depth < 2 else items)
    if origin is dict:
        pairs = [(_drawn(given[0], draw, 9), _drawn(given[1], draw, 9)) for _ in range(2)]
        return Source("{" + ", ".join(f"{key!r}: {item!r}" for key, item in pairs) + "}")
    if hint is bool:
        return draw.random() < 0.5
    if hint is int:
        return draw.choice(_NUMBERS) if draw.random() < 0.5 else draw.randrange(4)
    if hint is float:
        return draw.choice((0.0, 1.0, -1.0, 1e308, Source('float("nan")')))
    if hint is str:
        return draw.choice(_TEXTS)
    if hint is bytes:
        return value(draw)
    return None


def _untagged(kind: type[Any], draw: random.Random) -> Source:
    hints = typing.get_type_hints(kind)
    return Source(_listed([_drawn(hints[name], draw, 1) for name in kind.__struct_fields__]))
