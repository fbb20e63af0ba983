"""A codec of values that cannot run code when it is read.

A value is packed as MessagePack; a tensor is its element type, its shape and its bytes in
row-major order.  A value that cannot be part of an answer (a generator, a module, a tensor on a
device that is not the rank's) travels as its name, an :class:`Opaque`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import torch
import torch.distributed as dist

from grader.core.errors import out_of_memory
from grader.core.values import DEEP, Opaque, dtype_name, reduction_name, short, with_article
from grader.core.verdict import amount
from grader.core.wire import BrokenFrame

__all__ = ["LONG_TEXT", "MANY_PARTS", "pack", "pack_answer", "pack_known", "unpack"]

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

#: Limits on the characters of a string, and of all strings and tensor descriptions together.
LONG_TEXT, _TEXT = 100_000, 4 << 20

#: Limit on the bits of a whole number.
_BITS = 14_000

_REDUCTIONS = dist.ReduceOp.RedOpType.__members__


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
        return {"opaque": [what, ""]}

    def node(self, value: Any, depth: int = 0) -> Any:
        """Return a value as MessagePack has it, or as a map of one key that names its type."""
        self.nodes += 1
        kind = short(type(value).__name__)
        if depth > DEEP:
            return self.omit(f"{with_article(kind)} inside more than {DEEP} lists")
        if self.nodes > MANY_PARTS:
            return self.omit(f"{with_article(kind)} after {MANY_PARTS:,} other values")
        if self.text > _TEXT:
            return self.omit(f"{with_article(kind)} after {_TEXT:,} characters")
        if value is None or isinstance(value, bool):
            return value
        if type(value) is int:
            # MessagePack's numbers stop at 64 bits, Python's do not
            if abs(value) < 2**63:
                return value
            if value.bit_length() > _BITS:
                return self.omit(f"an int of {value.bit_length():,} bits")
            return {"int": self.count(str(value))}
        if isinstance(value, float):
            # numpy's float64 is a subclass of float, and is as good an answer
            return {"float": float.hex(value)}
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
            return items if type(value) is list else {"tuple": items}
        if type(value) is set and _plain(value):
            if self.nodes + len(value) > MANY_PARTS:
                return self.omit(f"{with_article(kind)} of {len(value)}")
            return {"set": [self.node(item, depth + 1) for item in value]}
        if isinstance(value, Mapping) and _plain(value):
            if self.nodes + len(value) > MANY_PARTS:
                return self.omit(f"{with_article(kind)} of {len(value)}")
            return {
                "dict": [
                    [self.node(key, depth + 1), self.node(item, depth + 1)]
                    for key, item in value.items()
                ]
            }
        if isinstance(value, torch.dtype):
            return {"dtype": dtype_name(value)}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
            return {"reduction": reduction_name(value)}
        if isinstance(value, Opaque):
            return {"opaque": [self.count(value.kind), self.count(value.text)]}
        self.opaque = True
        return {"opaque": [self.count(_kind(value)), self.count(_text(value))]}

    def count(self, text: str) -> str:
        """Return the text, and count its characters."""
        self.text += len(text)
        return text

    def tensor(self, tensor: torch.Tensor) -> Any:
        tensor = tensor.detach()
        name = dtype_name(tensor.dtype)
        what = f"{with_article(name)} tensor of shape {tuple(tensor.shape)}"
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
            return {"opaque": [foreign, ""]}
        self.nbytes += tensor.numel() * tensor.element_size()
        if self.limit is not None and self.nbytes > self.limit:
            self.omitted = self.omitted or f"{what} ({amount(tensor.nbytes)})"
            return {"large": [name, list(tensor.shape)]}
        plain = tensor.resolve_conj().resolve_neg().contiguous().cpu().as_subclass(torch.Tensor)
        # a single element is contiguous whatever its stride, and then no view of other elements
        flat = plain.as_strided((plain.numel(),), (1,))
        return {"tensor": [name, list(tensor.shape), flat.view(torch.uint8).numpy().data]}


def _plain(keys: Iterable[Any]) -> bool:
    return all(type(key) in (str, int) for key in keys)


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
            numbers, and sets of such keys; anything else becomes an :class:`Opaque`.
        limit: bytes of all tensors together that are sent; the others are only named.
        home: the device on which tensors may be besides the CPU.
    """
    packer = _Packer(limit, home)
    return msgspec.msgpack.encode(packer.node(value)), packer.omitted


def pack_known(value: Any, limit: int, home: torch.device = _CPU) -> bytes | None:
    """Return a value as bytes; None where a part of it would only be named.

    Equal values have equal bytes.

    Args:
        value: as for :func:`pack_answer`.
        limit: bytes of all tensors together.
        home: the device on which tensors may be besides the CPU.
    """
    packer = _Packer(limit, home)
    packed = msgspec.msgpack.encode(packer.node(value))
    return None if packer.opaque or packer.omitted else packed


def unpack(data: bytes, home: torch.device = _CPU) -> Any:
    """Return the value that :func:`pack` packed; its tensors are new, writable, and on ``home``.

    Raises:
        BrokenFrame: the bytes are not such a value.
        MemoryError: this process has no memory for it.
    """
    try:
        return _value(msgspec.msgpack.decode(data), home)
    except Exception as error:
        if out_of_memory(error):  # this machine is at fault, and not the answer
            raise MemoryError(short(str(error))) from error
        raise BrokenFrame(f"an answer that cannot be read: {short(str(error))}") from error


def _tensor(name: str, shape: list[int], octets: bytes, home: torch.device) -> torch.Tensor:
    dtype = _SENT[name]
    # torch takes no empty buffer; and an array of bytes, unlike bytes, may be written to
    flat = (
        torch.frombuffer(bytearray(octets), dtype=dtype) if octets else torch.empty(0, dtype=dtype)
    )
    return flat.reshape(shape).to(home)


def _value(node: Any, home: torch.device, depth: int = 0) -> Any:
    if depth > DEEP + 1:
        raise ValueError("lists in lists deeper than any that is packed")
    if isinstance(node, list):
        return [_value(item, home, depth + 1) for item in node]
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if not isinstance(node, dict):
        raise ValueError(f"no value is {with_article(type(node).__name__)}")
    ((tag, body),) = node.items()
    if tag == "tensor":
        name, shape, octets = body
        return _tensor(name, shape, octets, home)
    if tag == "tuple":
        return tuple(_value(item, home, depth + 1) for item in body)
    if tag == "set":
        return {_value(item, home, depth + 1) for item in body}
    if tag == "dict":
        return {_value(key, home, depth + 1): _value(item, home, depth + 1) for key, item in body}
    if tag == "float":
        return float.fromhex(body)
    if tag == "int":
        return int(body)
    if tag == "dtype":
        return _DTYPES[body]
    if tag == "device":
        # a string, since for a number torch would look for this machine's devices
        try:
            return torch.device(str(body))
        except RuntimeError:  # the rank has given a device a name of its own
            return Opaque(f"the device {short(str(body))}")
    if tag == "reduction":
        return _REDUCTIONS[body]
    if tag == "large":
        name, shape = body
        # only its shape and dtype count, so it is one element in memory
        return torch.zeros(1, dtype=_DTYPES[name]).expand(shape)
    if tag == "opaque":
        kind, text = body
        return Opaque(short(str(kind), 200), short(str(text), 200))
    raise ValueError(f"no value of kind {tag!r}")
