"""A codec of values that cannot run code when it is read.

A value is packed as MessagePack; a tensor is its element type, its shape and its bytes in
row-major order.  A value that cannot be part of an answer (a generator, a module, a tensor on a
device that is not the rank's) travels as its name, an :class:`Opaque`.

What is read is decoded into the types below and into no others, so that nothing in it can cost the
judge more than a small multiple of its length.  There are no maps, in particular: whoever chooses
the keys of a Python dict, tuples of numbers for example, can give all of them one hash.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
import torch
import torch.distributed as dist
from msgspec import Meta

from headcount.core.errors import out_of_memory
from headcount.core.events import Shape
from headcount.core.values import (
    DEEP,
    Opaque,
    UnsentTensor,
    dtype_name,
    reduction_name,
    short,
    with_article,
)
from headcount.core.verdict import amount
from headcount.core.wire import BrokenFrame

__all__ = ["LONG_TEXT", "MANY_PARTS", "STRUCTURE", "pack", "pack_answer", "pack_known", "unpack"]

#: Element types of tensors that can be sent back.
_SENT = {
    dtype_name(dtype): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16,
        torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
        torch.complex64,
    )
}  # fmt: skip

#: Every element type, some under several names, since an answer can be an element type itself.
_DTYPES = {dtype_name(one): one for one in vars(torch).values() if isinstance(one, torch.dtype)}

_CPU = torch.device("cpu")

#: Limit on the elements of all lists of a value together.
MANY_PARTS = 100_000

#: Limits on the characters of a string, and on the bytes of all strings and tensor descriptions
#: together.
LONG_TEXT, _TEXT = 100_000, 4 << 20

#: Largest size in bytes of an answer (a result and arguments) without its tensors.
STRUCTURE = 24 << 20

#: Limit on the bits of a whole number.
_BITS = 14_000

_REDUCTIONS = dist.ReduceOp.RedOpType.__members__


# The form of a packed value. ------------------------------------------------------

_Word = Annotated[str, Meta(max_length=LONG_TEXT)]
_Small = Annotated[str, Meta(max_length=1000)]
_Parts = Meta(max_length=MANY_PARTS)


class _Node(msgspec.Struct, array_like=True):
    """A value that is no ``None``, boolean, number or string of MessagePack's."""


class _List(_Node, tag="list"):
    items: Annotated[list[_Value], _Parts]


class _Tuple(_Node, tag="tuple"):
    items: Annotated[list[_Value], _Parts]


class _Set(_Node, tag="set"):
    items: Annotated[list[_Key], _Parts]


class _Dict(_Node, tag="dict"):
    items: Annotated[list[tuple[_Key, _Value]], _Parts]


class _Int(_Node, tag="int"):
    """A whole number of more than 64 bits, as text."""

    digits: Annotated[str, Meta(max_length=_BITS)]


class _Tensor(_Node, tag="tensor"):
    dtype: _Small
    shape: Shape
    data: bytes


class _Large(_Node, tag="large"):
    """A tensor that was too large to be sent."""

    dtype: _Small
    shape: Shape


class _Dtype(_Node, tag="dtype"):
    name: _Small


class _Device(_Node, tag="device"):
    name: _Small


class _Reduction(_Node, tag="reduction"):
    name: _Small


class _Named(_Node, tag="opaque"):
    kind: _Small
    text: _Small


#: Keys of sets and dicts: 64 bits hold few whole numbers of one hash.
_Key = int | _Word

_Value = (
    None | bool | int | float | _Word
    | _List | _Tuple | _Set | _Dict | _Int | _Tensor | _Large | _Dtype | _Device | _Reduction
    | _Named
)  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode


class _Packer:
    def __init__(self, limit: int | None, home: torch.device) -> None:
        self.home = home
        self.limit = limit
        self.nodes = 0
        self.text = 0
        self.nbytes = 0
        self.omitted = ""
        #: whether a part is only named
        self.opaque = False

    def omit(self, what: str) -> Any:
        """Return the placeholder of a value that is too large to be sent."""
        self.omitted = self.omitted or what
        return _Named(what, "")

    def node(self, value: Any, depth: int = 0) -> Any:
        """Return a value in its packed form."""
        self.nodes += 1
        kind = short(type(value).__name__)
        if depth > DEEP:
            return self.omit(f"{with_article(kind)} inside more than {DEEP} lists")
        if self.nodes > MANY_PARTS:
            return self.omit(f"{with_article(kind)} after {MANY_PARTS:,} other values")
        if self.text > _TEXT:
            return self.omit(f"{with_article(kind)} after {_TEXT:,} bytes of text")
        if value is None or isinstance(value, bool):
            return value
        if type(value) is int:
            # MessagePack's numbers stop at 64 bits, Python's do not
            if abs(value) < 2**63:
                return value
            if value.bit_length() > _BITS:
                return self.omit(f"an int of {value.bit_length():,} bits")
            return _Int(self.count(str(value)))
        if isinstance(value, float):
            # numpy's float64 is a subclass of float, and is as good an answer
            return float(value)
        if isinstance(value, str) and type(value) is str:
            if len(value) > LONG_TEXT:
                return self.omit(f"a str of {len(value)} characters")
            return self.count(value.encode("utf-8", "replace").decode())
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if type(value) in (list, tuple):
            if self.nodes + len(value) > MANY_PARTS:
                return self.omit(f"{with_article(kind)} of {len(value)}")
            items = [self.node(item, depth + 1) for item in value]
            return _List(items) if type(value) is list else _Tuple(items)
        if type(value) is set and _plain(value):
            if self.nodes + len(value) > MANY_PARTS:
                return self.omit(f"{with_article(kind)} of {len(value)}")
            return _Set([self.key(item) for item in value])
        if isinstance(value, Mapping) and _plain(value):
            if self.nodes + len(value) > MANY_PARTS:
                return self.omit(f"{with_article(kind)} of {len(value)}")
            return _Dict(
                [(self.key(key), self.node(item, depth + 1)) for key, item in value.items()]
            )
        if isinstance(value, torch.dtype):
            return _Dtype(dtype_name(value))
        if isinstance(value, torch.device):
            return _Device(str(value))
        if isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
            return _Reduction(reduction_name(value))
        if isinstance(value, Opaque):
            return _Named(self.count(value.kind), self.count(value.text))
        self.opaque = True
        return _Named(self.count(_kind(value)), self.count(_text(value)))

    def key(self, key: str | int) -> _Key:
        """Return a key of a set or a dict in its packed form."""
        self.nodes += 1
        return key if isinstance(key, int) else self.count(key.encode("utf-8", "replace").decode())

    def count(self, text: str) -> str:
        """Return the text, and count its bytes."""
        self.text += len(text.encode("utf-8", "replace"))
        return text

    def tensor(self, tensor: torch.Tensor) -> Any:
        tensor = tensor.detach()
        name = dtype_name(tensor.dtype)
        what = _tensor_name(tensor.dtype, tuple(tensor.shape))
        self.text += len(what)
        foreign = ""
        if tensor.layout is not torch.strided or tensor.is_quantized:
            foreign = f"{what} of layout {tensor.layout}"
        elif tensor.device.type not in ("cpu", self.home.type):
            foreign = f"{what} on device {tensor.device}"
        elif name not in _SENT:
            foreign = what
        if foreign:
            self.opaque = True
            return _Named(foreign, "")
        self.nbytes += tensor.numel() * tensor.element_size()
        if self.limit is not None and self.nbytes > self.limit:
            self.omitted = self.omitted or f"{what} ({amount(tensor.nbytes)})"
            return _Large(name, list(tensor.shape))
        plain = tensor.resolve_conj().resolve_neg().contiguous().cpu().as_subclass(torch.Tensor)
        # a single element is contiguous whatever its stride, and then no view of other elements
        flat = plain.as_strided((plain.numel(),), (1,))
        octets = flat.view(torch.uint8).numpy().data
        return _Tensor(name, list(tensor.shape), octets)  # type: ignore[arg-type]


def _tensor_name(dtype: torch.dtype, shape: tuple[int, ...]) -> str:
    return short(f"{with_article(dtype_name(dtype))} tensor of shape {shape}", 200)


def _plain(keys: Iterable[Any]) -> bool:
    """Return whether keys of a set or a dict can be sent as they are."""
    return all(
        abs(key) < 2**63 if type(key) is int else type(key) is str and len(key) <= LONG_TEXT
        for key in keys
    )


def _kind(value: Any) -> str:
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    name = f"{module}{kind.__qualname__}"
    return with_article(short(name))


def _text(value: Any) -> str:
    try:
        return short(repr(value))
    except Exception:
        # a student's __repr__ may raise anything; then the type alone is named
        return ""


def pack(value: Any, limit: int | None = None, home: torch.device = _CPU) -> bytes:
    """Return a value as bytes; see :func:`pack_answer`."""
    return pack_answer(value, limit, home)[0]


def pack_answer(
    value: Any, limit: int | None = None, home: torch.device = _CPU
) -> tuple[bytes, str]:
    """Return a value as bytes, and the name of a part that was left out as too large, if any.

    Whatever the value is, its structure takes far less than the judge's limit on a frame.

    Args:
        value: tensors, numbers, strings, ``None``, dtypes, devices, reductions, and
            lists, tuples and mappings of these whose keys are strings or whole
            numbers of 64 bits, and sets of such keys; anything else becomes an :class:`Opaque`.
        limit: bytes of all tensors together that are sent; the others are only named.
        home: the device on which tensors may be besides the CPU.
    """
    packer = _Packer(limit, home)
    return _encode(packer.node(value)), packer.omitted


def pack_known(value: Any, limit: int, home: torch.device = _CPU) -> bytes | None:
    """Return a value as bytes; None where a part of it would only be named.

    Equal values have equal bytes.

    Args:
        value: as for :func:`pack_answer`.
        limit: bytes of all tensors together.
        home: the device on which tensors may be besides the CPU.
    """
    packer = _Packer(limit, home)
    packed = _encode(packer.node(value))
    return None if packer.opaque or packer.omitted else packed


def unpack(data: bytes, home: torch.device = _CPU, limit: float = math.inf) -> Any:
    """Return the value that :func:`pack` packed; its tensors are new, writable, and on ``home``.

    Raises:
        BrokenFrame: the bytes are not such a value.
        MemoryError: this process has no memory for it.
    """
    try:
        return _Unpacker(home, limit).value(_decoder.decode(data))
    except Exception as error:
        if out_of_memory(error):  # this machine is at fault, and not the answer
            raise MemoryError(short(str(error))) from error
        raise BrokenFrame(f"an answer that cannot be read: {short(str(error))}") from error


_decoder = msgspec.msgpack.Decoder(_Value)


class _Unpacker:
    """The reader of one packed value, which may have come from anywhere.

    Args:
        home: the device for its tensors.
        room: bytes that they may have together.
    """

    def __init__(self, home: torch.device, room: float) -> None:
        self.home, self.room = home, room
        self.nodes = 0

    def value(self, node: Any, depth: int = 0) -> Any:
        """Return the value of a node.

        Raises:
            ValueError: the packer would not have packed it.
        """
        self.nodes += 1
        if depth > DEEP + 1:
            raise ValueError("lists in lists deeper than any that is packed")
        if self.nodes > 2 * MANY_PARTS:
            raise ValueError("more parts than are packed")
        if not isinstance(node, _Node):
            return node
        if isinstance(node, (_List, _Tuple)):
            items = [self.value(item, depth + 1) for item in node.items]
            return items if isinstance(node, _List) else tuple(items)
        if isinstance(node, _Set):
            return set(node.items)
        if isinstance(node, _Dict):
            return {key: self.value(item, depth + 1) for key, item in node.items}
        if isinstance(node, _Int):
            return int(node.digits)
        if isinstance(node, _Tensor):
            return self.tensor(_SENT[node.dtype], node.shape, node.data)
        if isinstance(node, _Large):
            shape, dtype = tuple(node.shape), _SENT[node.dtype]
            return UnsentTensor(_tensor_name(dtype, shape), shape=shape, dtype=dtype)
        if isinstance(node, _Dtype):
            return _DTYPES[node.name]
        if isinstance(node, _Device):
            # a string, since for a number torch would look for this machine's devices
            try:
                return torch.device(node.name)
            except RuntimeError:  # the rank has given a device a name of its own
                return Opaque(f"the device {short(node.name)}")
        if isinstance(node, _Reduction):
            return _REDUCTIONS[node.name]
        assert isinstance(node, _Named)
        return Opaque(short(node.kind, 200), short(node.text, 200))

    def tensor(self, dtype: torch.dtype, shape: list[int], data: bytes) -> torch.Tensor:
        """Return the tensor that has these bytes.

        Raises:
            ValueError: it has more of them, or fewer.
        """
        self.room -= len(data)
        if self.room < 0 or math.prod(shape) * dtype.itemsize != len(data):
            raise ValueError(f"a tensor of shape {tuple(shape)} in {len(data)} bytes")
        if not data:  # torch takes no empty buffer
            return torch.empty(shape, dtype=dtype, device=self.home)
        # an array of bytes, unlike bytes, may be written to
        return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape).to(self.home)
