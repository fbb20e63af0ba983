"""NCCL: between NVIDIA's GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from grader.rank.transports import FOREVER

__all__ = ["BACKEND", "Finishing", "Nccl", "NcclGroup", "meeting_of_its_own"]


class Nccl:
    """One GPU for each rank, or for several, where NCCL takes that."""

    name = "nccl"
    # a send and a receive that are not in one batch wait for each other on the device's stream
    coalesces = True
    even_lists = False

    def device(self, rank: int) -> torch.device:
        """The rank's GPU, which is the current one from now on: NCCL uses that."""
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        return device

    def connect(
        self, store: c10d.Store, rank: int, size: int, members: Sequence[int], whole: bool
    ) -> NcclGroup:
        """An NCCL group whose requests end when the device has done the work."""
        options = c10d.ProcessGroupNCCL.Options()
        options._timeout = FOREVER
        meeting = meeting_of_its_own(store, rank)
        inner = c10d.ProcessGroupNCCL(meeting, rank, size, options)
        group = NcclGroup(inner, torch.device("cuda", torch.cuda.current_device()), meeting)
        # connections are made when they are first used; what stands in their way is said now
        group.barrier().wait()
        return group


def meeting_of_its_own(store: c10d.Store, rank: int) -> c10d.Store:
    """A store for NCCL, whose threads ask one at any time and must not wait for Python.

    Args:
        store: where its members meet, to tell them of the other.
        rank: of this process in the group; rank 0 keeps the store.
    """
    here = "127.0.0.1"
    if rank:
        port = int(store.get("port"))
        return dist.TCPStore(here, port, is_master=False, wait_for_workers=False)  # type: ignore[attr-defined]
    kept = dist.TCPStore(here, 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    store.set("port", str(kept.port))
    return kept


class NcclGroup:
    """An NCCL group, waited for as the record needs it.

    NCCL's own ``wait`` returns at once: it only makes the current stream wait.
    A record in which that counted as the end would know of no deadlock.

    Args:
        inner: the group of torch's.
        device: where the rank's tensors are.
        meeting: the store that it goes on asking.
    """

    def __init__(self, inner: Any, device: torch.device, meeting: c10d.Store) -> None:
        self._inner = inner
        self._device = device
        self._meeting = meeting

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return method if not callable(method) else self._finishing(method)

    def _finishing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            work = method(*args, **kwargs)
            return Finishing(work, self._device) if hasattr(work, "wait") else work

        return call

    def begin_batch(self) -> None:
        """From now on, messages are only collected."""
        self._inner._start_coalescing(self._device)

    def end_batch(self) -> Finishing:
        """Start them all at once; one request for all."""
        return Finishing(self._inner._end_coalescing(self._device), self._device)


class Finishing:
    """A request of NCCL's whose ``wait`` ends when the device is done."""

    def __init__(self, work: Any, device: torch.device) -> None:
        self._work = work
        self._device = device

    def wait(self, *timeout: Any) -> None:
        """Block until the operation is complete on the device."""
        self._work.wait(*timeout)
        torch.cuda.current_stream(self._device).synchronize()

    def get_future(self) -> Any:
        """NCCL's own future, which keeps to streams."""
        return self._work.get_future()

    def result(self) -> Any:
        """The operation's tensors."""
        return self._work.result()


BACKEND = Nccl()
