"""NCCL: torch's own transport between NVIDIA GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from headcount.rank.transports import FOREVER

__all__ = ["BACKEND", "Finishing", "Nccl", "NcclGroup", "nccl_store"]


class Nccl:
    """The NCCL backend, with a GPU for each rank, which ranks share if there are not enough."""

    name = "nccl"
    # a send and a receive outside one batch wait for each other on the device's stream
    coalesces = True
    gloo_tensors = False

    def device(self, rank: int) -> torch.device:
        """Return the rank's GPU, and make it the current one, which NCCL uses."""
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        return device

    def prepare(self, rank: int, size: int) -> None:
        """Let ranks share GPUs if there are fewer than ranks.

        NCCL refuses two ranks on one GPU, unless they are on two machines; and a machine it knows
        by the hash of its name, in whose place ``NCCL_HOSTID`` is taken (``getHostHash`` in
        NCCL's `utils.cc <https://github.com/NVIDIA/nccl/blob/master/src/misc/utils.cc>`_), once
        for a process.  So the first ranks, one on each GPU, are on one machine, the next ones on
        another, and what they say to each other goes through a socket.  Results and rules are
        NCCL's; times are not.
        """
        gpus = torch.cuda.device_count()
        if size > gpus:
            os.environ["NCCL_HOSTID"] = f"gather-round-{rank // gpus}"
            # these machines have no network between them but the loopback of the real one
            os.environ["NCCL_SOCKET_IFNAME"] = "lo"
            os.environ["NCCL_NET"] = "Socket"

    def connect(
        self,
        store: c10d.Store,
        rank: int,
        size: int,
        members: Sequence[int],
        whole: bool,
        limit: timedelta,
    ) -> NcclGroup:
        """Return an NCCL group whose requests end when the device has done the work."""
        options = c10d.ProcessGroupNCCL.Options()
        options._timeout = FOREVER
        own = nccl_store(store, rank)
        inner = c10d.ProcessGroupNCCL(own, rank, size, options)
        group = NcclGroup(inner, torch.device("cuda", torch.cuda.current_device()), own)
        # connections are made when they are first used; the barrier makes errors appear now
        group.barrier().wait()
        return group


def nccl_store(store: c10d.Store, rank: int) -> c10d.Store:
    """Return a store for NCCL, whose threads use it at any time and must not wait for Python.

    Args:
        store: the members' store, in which they find the port of the new one.
        rank: rank of this process in the group; rank 0 serves the new store.
    """
    here = "127.0.0.1"
    if rank:
        port = int(store.get("port"))
        return dist.TCPStore(here, port, is_master=False, wait_for_workers=False)  # type: ignore[attr-defined]
    kept = dist.TCPStore(here, 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    store.set("port", str(kept.port))
    return kept


class NcclGroup:
    """An NCCL group whose requests block until the device is done.

    NCCL's own ``wait`` returns at once: it only makes the current stream wait.  If that counted
    as completion, no deadlock would ever be found.

    Args:
        inner: torch's group.
        device: the device of the rank's tensors.
        store: the store that NCCL uses as long as the group lives.
    """

    def __init__(self, inner: Any, device: torch.device, store: c10d.Store) -> None:
        self._inner = inner
        self._device = device
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return method if not callable(method) else self._finishing(method)

    def _finishing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            for options in (*args, *kwargs.values()):
                if hasattr(options, "asyncOp"):
                    # or torch puts the work into the current stream, and returns no request
                    options.asyncOp = True
            work = method(*args, **kwargs)
            return Finishing(work, self._device) if hasattr(work, "wait") else work

        return call

    def begin_batch(self) -> None:
        """Collect the messages that follow, instead of starting them."""
        self._inner._start_coalescing()

    def end_batch(self) -> Finishing:
        """Start the collected messages at once, and return one request for all."""
        return Finishing(self._inner._end_coalescing(), self._device)


class Finishing:
    """An NCCL request whose ``wait`` ends when the device is done."""

    def __init__(self, work: Any, device: torch.device) -> None:
        self._work = work
        self._device = device

    def wait(self, *timeout: Any) -> None:
        """Block until the operation is complete on the device."""
        self._work.wait(*timeout)
        torch.cuda.current_stream(self._device).synchronize()

    def get_future(self) -> Any:
        """Return NCCL's own future, which is ordered by streams."""
        return self._work.get_future()

    def result(self) -> Any:
        """Return the operation's tensors."""
        return self._work.result()


BACKEND = Nccl()
