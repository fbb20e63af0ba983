"""Measures the memory that the tensors of a rank hold."""

from __future__ import annotations

import ctypes
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from grader.instruments.operations import EagerDispatchMode
from headcount.core.values import dtype_name, tensors_in

__all__ = [
    "LETTING_GO",
    "HeldStorages",
    "PeakStorages",
    "ReceivedStorages",
    "return_freed_memory",
    "wait_until",
]


#: Seconds in which a transport lets go of what it has sent, however busy the machine is.
LETTING_GO = 0.5


#: Kinds of tensors that are named of what a rank holds: the largest ones explain a sum.
_KINDS = 4


class HeldStorages(EagerDispatchMode):
    """A dispatch mode that knows which memory the tensors of its context hold.

    It notes the storage of every tensor that an operation takes or makes, without keeping it
    alive.  A storage counts once, however many views there are of it, for as long as anything
    refers to it: an attribute, a dictionary, a closure, or autograd's graph.  Memory that no
    operation of torch has touched in the context, such as an array of NumPy, is not seen.

    Args:
        own: returns the tensors whose elements do not count, such as parameters and their
            gradients.  What else their storages hold counts.
    """

    #: Seconds that :meth:`settle` waits in this process.
    patience = LETTING_GO

    def __init__(self, own: Callable[[], Iterable[torch.Tensor]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own = own
        #: by the address of the storage: a reference that does not keep it alive but keeps the
        #: address from being used again, and the first tensor's shape and dtype
        self._seen: dict[int, tuple[StorageWeakRef, str]] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self._note(tensors_in([args, kwargs, result]))
        return result

    def _note(self, tensors: Iterable[torch.Tensor]) -> None:
        """Count the storages of these tensors from now on."""
        for tensor in _unwrapped(tensors):
            if tensor.layout is torch.strided:
                storage = tensor.untyped_storage()
                if storage._cdata not in self._seen:
                    shape = "×".join(map(str, tensor.shape)) or "scalar"
                    text = f"{shape} {dtype_name(tensor.dtype)}"
                    reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                    self._seen[storage._cdata] = (reference, text)

    def settle(self, most: int) -> None:
        """Wait until no more than ``most`` bytes are held, see :func:`wait_until`.

        An answer that has held more for the whole time holds more in further cases, too, and each
        would take the time again: they are given a tenth of it.
        """
        released = wait_until(lambda: self.nbytes <= most, HeldStorages.patience)
        if most and not released:
            HeldStorages.patience = LETTING_GO / 10

    def found(self, runs: Collection[bytes], apart_from: Iterable[torch.Tensor] = ()) -> set[bytes]:
        """Return which of these runs of bytes stand in memory that is held, own tensors included.

        So one can ask whether some numbers are in memory, whatever tensor they are in.  The memory
        of the tensors ``apart_from`` is not searched.
        """
        left_out = {tensor.untyped_storage()._cdata for tensor in apart_from}
        there: set[bytes] = set()
        for storage, _ in self._storages():
            if storage.nbytes() and storage._cdata not in left_out:
                data = ctypes.string_at(storage.data_ptr(), storage.nbytes())
                there.update(run for run in runs if run in data)
        return there

    @property
    def nbytes(self) -> int:
        """The bytes that are held now."""
        return sum(nbytes for nbytes, _ in self.counted_storages())

    def __str__(self) -> str:
        """Return what is held, the largest first: ``2 of 24×32 float32, 1 of 32 float32``."""
        counted = Counter(entry for entry in self.counted_storages())
        ordered = sorted(counted.items(), key=lambda item: -item[0][0])
        largest = [f"{number} of {text}" for (_, text), number in ordered[:_KINDS]]
        smaller = sum(number for _, number in ordered[_KINDS:])
        return ", ".join([*largest, f"{smaller} smaller"] if smaller else largest)

    def counted_storages(self) -> list[tuple[int, str]]:
        """Return the bytes of each storage that count, if there are any, and its first shape."""
        own: Counter[int] = Counter()
        for tensor in {id(t): t for t in self._own()}.values():
            own[tensor.untyped_storage()._cdata] += tensor.nbytes
        found = []
        for storage, text in self._storages():
            mine = own[storage._cdata]
            if (nbytes := storage.nbytes() - mine) > 0:
                found.append((nbytes, f"{nbytes} more bytes of {text}" if mine else text))
        return found

    def _storages(self) -> Iterator[tuple[Any, str]]:
        """Yield each storage that is still alive, with its first shape and dtype."""
        for address, (reference, text) in list(self._seen.items()):
            storage: Any = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
            if storage is None:
                del self._seen[address]
            else:
                yield storage, text


class PeakStorages(HeldStorages):  # type: ignore[no-untyped-call]
    """Held storages that note the most bytes that were held when an operation had ended.

    To add up all storages after every operation takes longer than most operations.

    Attributes:
        most: those bytes.
    """

    def __init__(self, own: Callable[[], Iterable[torch.Tensor]]) -> None:
        super().__init__(own)
        self.most = 0

    def __torch_dispatch__(self, *call: Any) -> Any:
        result = super().__torch_dispatch__(*call)
        self.most = max(self.most, self.nbytes)
        return result


def _unwrapped(tensors: Iterable[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Yield the tensors, and in place of a wrapper, whose storage has no memory, what it wraps."""
    for tensor in tensors:
        wrapper: Any = tensor
        # every tensor of every operation passes here, and nearly all are plain
        plain = type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter
        if not plain and is_traceable_wrapper_subclass(wrapper):  # such as a DTensor
            names, _ = wrapper.__tensor_flatten__()
            # a DTensor names its mesh as well, which is no tensor
            yield from _unwrapped(tensors_in([getattr(wrapper, name) for name in names]))
        else:
            yield tensor


def wait_until(condition: Callable[[], bool], timeout: float = LETTING_GO) -> bool:
    """Wait until a condition on held memory holds, for at most ``timeout`` seconds.

    The transport's own thread lets go of the tensors of a collective a moment after the rank has
    seen its end, and they would count.

    Returns:
        whether it holds.
    """
    until, pause = time.monotonic() + timeout, 1e-4
    while not condition():
        if time.monotonic() >= until:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.02)  # it holds at once, or is not worth a processor
    return True


#: Operations whose results hold the numbers of their arguments, and none that are computed.
_MOVES = frozenset(
    {
        "_to_copy", "cat", "clone", "constant_pad_nd", "copy", "flip", "gather", "index",
        "index_copy", "index_put", "index_select", "masked_select", "repeat", "roll",
        "select_scatter", "slice_scatter", "stack", "take",
    }
)  # fmt: skip


class ReceivedStorages(HeldStorages):  # type: ignore[no-untyped-call]
    """A dispatch mode that knows which memory holds what messages have brought to this rank.

    A storage counts, as a whole, from the moment a receive into it is posted in the context, and
    for as long as anything refers to it; and so does one to which an operation copies it.  What is
    computed from it does not count.  A rank holds what it needs, and what is coming, as it begins
    to wait: before that, requests of an earlier step may still keep their tensors.

    Attributes:
        most: the most bytes that were held when the rank began to wait.
        fullest: what they were.
    """

    def __init__(self) -> None:
        super().__init__(list)
        self.most = 0
        self.fullest = ""

    def received(self, tensors: Iterable[torch.Tensor]) -> None:
        """Count the tensors of a receive that is posted now."""
        self._note(tensors)

    def waits(self) -> None:
        """Compare what is held, as the rank begins to wait, with the most so far."""
        if (nbytes := self.nbytes) > self.most:
            self.most, self.fullest = nbytes, str(self)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        moves = func.overloadpacket.__name__.removesuffix("_") in _MOVES
        if moves and any(
            tensor.untyped_storage()._cdata in self._seen
            for tensor in tensors_in([args, kwargs or {}])
            if tensor.layout is torch.strided
        ):
            self._note(tensors_in([result]))
        return result


#: glibc's option for the size of blocks that are mapped, and so unmapped once they are freed.
_M_MMAP_THRESHOLD, _MAPPED = -3, 1 << 18


def return_freed_memory() -> None:
    """Let what this process frees from now on go back to the kernel, as far as glibc does that.

    It keeps small blocks and, after large ones have been freed, larger and larger ones, so that
    the kernel would count what is no longer used.
    """
    libc: Any = ctypes.CDLL(None)
    if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim"):
        libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED)
        libc.malloc_trim(0)
