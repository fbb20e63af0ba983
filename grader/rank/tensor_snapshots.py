"""What lies in a rank's tensors while its messages travel.

A witness keeps an eye on small tensors: the arguments of a call, whatever is
sent from or received into, the result.  Every time the rank communicates it
reports the ones that have changed, so that a replay can show the program's own
data moving, a sum made in place included.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import torch

from grader.core.events import Event, Held, Seen

__all__ = ["Witness"]


class Witness:
    """Reports the contents of small tensors.

    Args:
        emit: takes an event, as the recorder's does.
        largest: elements of the largest memory that is looked at.
    """

    def __init__(self, emit: Callable[[Event, bool], None], largest: int) -> None:
        self._emit = emit
        self._largest = largest
        # by address; a view of the whole memory also keeps it from being freed,
        # so that no other tensor gets the same address
        self._watched: dict[int, torch.Tensor] = {}
        self._last: dict[int, list[float]] = {}
        self._lock = threading.Lock()

    def hold(self, role: str, tensors: Iterable[torch.Tensor]) -> None:
        """Report that these tensors are the arguments, or the result, and watch them."""
        for tensor in tensors:
            if self._watch(tensor):
                buffer, offset = tensor.untyped_storage().data_ptr(), int(tensor.storage_offset())
                self._emit(Held(role, buffer, offset, tensor.numel()), False)
        self.look()

    def look(self, tensor: torch.Tensor | None = None) -> None:
        """Report every watched memory that has changed; ``tensor`` is watched from now on."""
        if tensor is not None:
            self._watch(tensor)
        with self._lock:
            for buffer, memory in self._watched.items():
                values = memory.double().tolist()
                if self._last.get(buffer) != values:
                    self._last[buffer] = values
                    self._emit(Seen(buffer, values, time.monotonic_ns()), False)

    def _watch(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor can be watched; if so, it is."""
        plain = tensor.layout is torch.strided and tensor.device.type == "cpu"
        if not plain or tensor.dtype.is_complex or not tensor.is_contiguous():
            return False
        storage = tensor.untyped_storage()
        if not 0 < storage.nbytes() // tensor.element_size() <= self._largest:
            return False
        with self._lock:
            if storage.data_ptr() not in self._watched:
                memory = torch.empty(0, dtype=tensor.dtype).set_(storage)
                self._watched[storage.data_ptr()] = memory
        return True
