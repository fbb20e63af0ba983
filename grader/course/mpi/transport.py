"""MPI, through mpi4py and the library that it finds.

torch's wheels are built without their MPI backend, so this module has the methods of a process
group on an MPI communicator.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from mpi4py import MPI
from torch.distributed import distributed_c10d as c10d

from headcount.core.values import reduction_name

__all__ = ["BACKEND", "Mpi", "MpiGroup", "RequestGroup", "operation", "typed"]


# MPI's operations for torch's reductions, also for element types that MPI lacks. ----

#: The element types that MPI can reduce by itself.
_KNOWN = {
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.int8: MPI.INT8_T,
    torch.int16: MPI.INT16_T,
    torch.int32: MPI.INT32_T,
    torch.int64: MPI.INT64_T,
    torch.uint8: MPI.UINT8_T,
    torch.bool: MPI.C_BOOL,
    torch.complex64: MPI.C_FLOAT_COMPLEX,
    torch.complex128: MPI.C_DOUBLE_COMPLEX,
}

_OPERATIONS = {
    "SUM": MPI.SUM,
    "PRODUCT": MPI.PROD,
    "MIN": MPI.MIN,
    "MAX": MPI.MAX,
    "BAND": MPI.BAND,
    "BOR": MPI.BOR,
    "BXOR": MPI.BXOR,
}

#: The same on tensors, for element types of two bytes.
_BY_TORCH: dict[str, Callable[..., torch.Tensor]] = {
    "SUM": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
}


def typed(tensor: torch.Tensor) -> list[Any]:
    """Return a contiguous tensor as a buffer whose elements MPI can reduce."""
    known = _KNOWN.get(tensor.dtype)
    return [raw(tensor), tensor.numel(), _halves() if known is None else known]


def raw(tensor: torch.Tensor) -> Any:
    """Return the memory of a contiguous tensor.

    Raises:
        ValueError: the tensor is not contiguous, or not on the CPU.
    """
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise ValueError(f"MPI needs dense CPU tensors here, not one on {tensor.device}")
    if not tensor.is_contiguous():
        raise ValueError("MPI needs contiguous tensors; call .contiguous() first")
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()


def operation(name: str, dtype: torch.dtype) -> MPI.Op:
    """Return MPI's operation for a reduction such as ``SUM`` of elements of a type.

    Raises:
        RuntimeError: MPI has no such reduction.
    """
    if name not in _OPERATIONS:
        raise RuntimeError(f"MPI has no reduction {name}; it has {', '.join(_OPERATIONS)}")
    if dtype in _KNOWN:
        return _OPERATIONS[name]
    if name not in _BY_TORCH:
        raise RuntimeError(f"MPI has no reduction {name} of {dtype}")
    return _user_defined(name, dtype)


@lru_cache
def _halves() -> MPI.Datatype:
    """Return the type of elements of two bytes: float16 and bfloat16."""
    return MPI.BYTE.Create_contiguous(2).Commit()


@lru_cache
def _user_defined(name: str, dtype: torch.dtype) -> MPI.Op:
    """Return an operation that torch carries out."""
    combine = _BY_TORCH[name]

    def reduce(source: Any, target: Any, _: MPI.Datatype) -> None:
        ours = torch.frombuffer(target, dtype=dtype)
        ours.copy_(combine(torch.frombuffer(source, dtype=dtype), ours))

    return MPI.Op.Create(reduce, commute=True)


# A process group's methods on an MPI communicator. --------------------------------
#
# Their arguments are those of torch's ``ProcessGroupGloo``: lists of one tensor,
# lists of lists, and options.  :mod:`headcount.rank.arguments` has checked before that they
# match, on one rank and between ranks.

Tensors = Sequence[torch.Tensor]

#: Seconds between two tests of a request: the first pause, and the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 2e-5, 1e-3

#: Tests before the first pause.
_EAGER = 50


class RequestGroup:
    """Requests of MPI, waited for as one.

    MPI's own wait would keep a processor busy, which the rank that is to send may need; this one
    tests the requests and sleeps in between.

    Args:
        requests: MPI's requests.
        finish: called when they are complete.
        tensors: the tensors that the operation returns.
        buffers: the memory that MPI uses until then, kept alive here.
    """

    def __init__(
        self,
        requests: list[Any],
        finish: Callable[[], object] = lambda: None,
        tensors: Tensors = (),
        buffers: Sequence[Any] = (),
    ) -> None:
        self._requests = requests
        self._finish = finish
        self._tensors = list(tensors)
        self._buffers = buffers

    def wait(self, timeout: Any = None) -> None:
        """Block until all are complete."""
        looks, pause = 0, _FIRST_PAUSE
        while not MPI.Request.Testall(self._requests):
            looks += 1
            time.sleep(pause if looks > _EAGER else 0)
            if looks > _EAGER:
                pause = min(1.5 * pause, _LONGEST_PAUSE)
        self._finish()

    def get_future(self) -> torch.futures.Future[Any]:
        """Return a future that is complete when all requests are."""
        future: torch.futures.Future[Any] = torch.futures.Future()

        def follow() -> None:
            try:
                self.wait()
            except RuntimeError as error:
                future.set_exception(error)
            else:
                future.set_result(self._tensors)

        threading.Thread(target=follow, daemon=True).start()
        return future

    def result(self) -> list[torch.Tensor]:
        """Return the operation's tensors."""
        return self._tensors


class MpiGroup:
    """A communicator, with the methods of a process group.

    Sends are synchronous: they end when their receive is posted, as gloo's do.  MPI's standard
    send may copy the message and return, which hides a deadlock until messages grow.
    """

    def __init__(self, communicator: MPI.Intracomm) -> None:
        self._comm = communicator

    # Point to point. ---------------------------------------------------------

    def send(self, tensors: Tensors, dst: int, tag: int) -> RequestGroup:
        """Send to rank ``dst``."""
        buffer = [raw(tensors[0]), MPI.BYTE]
        return RequestGroup([self._comm.Issend(buffer, dst, tag)], buffers=buffer)

    def recv(self, tensors: Tensors, src: int, tag: int) -> RequestGroup:
        """Receive from rank ``src``."""
        buffer = [raw(tensors[0]), MPI.BYTE]
        return RequestGroup([self._comm.Irecv(buffer, src, tag)], buffers=buffer)

    # Collectives. ------------------------------------------------------------

    def broadcast(self, tensors: Tensors, opts: Any) -> RequestGroup:
        """Copy the root's tensor to all ranks."""
        buffer = [raw(tensors[0]), MPI.BYTE]
        return RequestGroup(
            [self._comm.Ibcast(buffer, opts.rootRank)], tensors=tensors, buffers=buffer
        )

    def allreduce(self, tensors: Tensors, opts: Any) -> RequestGroup:
        """Reduce the tensors of all ranks, onto all of them."""
        reduction = reduction_name(opts.reduceOp)
        operations = [operation(reduction, tensor.dtype) for tensor in tensors]
        buffers = [typed(tensor) for tensor in tensors]
        requests = [
            self._comm.Iallreduce(MPI.IN_PLACE, buffer, combine)
            for buffer, combine in zip(buffers, operations, strict=True)
        ]
        return RequestGroup(requests, tensors=tensors, buffers=buffers)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any) -> RequestGroup:
        """Reduce several tensors."""
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: Tensors, opts: Any) -> RequestGroup:
        """Reduce the tensors onto the root; those of other ranks stay as they are."""
        buffer, root = typed(tensors[0]), opts.rootRank
        combine = operation(reduction_name(opts.reduceOp), tensors[0].dtype)
        if self._comm.rank == root:
            request = self._comm.Ireduce(MPI.IN_PLACE, buffer, combine, root)
        else:
            request = self._comm.Ireduce(buffer, None, combine, root)
        return RequestGroup([request], tensors=tensors, buffers=buffer)

    def allgather(
        self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None
    ) -> RequestGroup:
        """Gather the tensors of all ranks onto all of them."""
        landing, mine = _Landing(outputs[0]), [raw(inputs[0]), MPI.BYTE]
        request = self._comm.Iallgatherv(mine, landing.buffer)
        return RequestGroup([request], landing.unpack, outputs[0], mine)

    def _allgather_base(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any = None
    ) -> RequestGroup:
        """Gather the tensors of all ranks onto all of them, into one tensor."""
        mine, all_of_them = [raw(given), MPI.BYTE], [raw(output), MPI.BYTE]
        request = self._comm.Iallgather(mine, all_of_them)
        return RequestGroup([request], tensors=[output], buffers=[mine, all_of_them])

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> RequestGroup:
        """Gather the tensors of all ranks onto the root."""
        mine, root = [raw(inputs[0]), MPI.BYTE], opts.rootRank
        if self._comm.rank != root:
            return RequestGroup([self._comm.Igatherv(mine, None, root)], buffers=mine)
        landing = _Landing(outputs[0])
        request = self._comm.Igatherv(mine, landing.buffer, root)
        return RequestGroup([request], landing.unpack, outputs[0], mine)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> RequestGroup:
        """Send each rank one of the root's tensors."""
        mine, root = [raw(outputs[0]), MPI.BYTE], opts.rootRank
        given = None
        if self._comm.rank == root:
            given = _packed(inputs[0])
        request = self._comm.Iscatterv(given, mine, root)
        return RequestGroup([request], tensors=outputs, buffers=[mine, given])

    def reduce_scatter(
        self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any
    ) -> RequestGroup:
        """Reduce onto each rank the tensors at its place in the lists of all ranks."""
        parts = inputs[0]
        flat = torch.cat([part.detach().reshape(-1) for part in parts])
        return self._reduce_scattered(outputs[0], flat, [part.numel() for part in parts], opts)

    def _reduce_scatter_base(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any
    ) -> RequestGroup:
        """Reduce onto each rank the parts at its place in the tensors of all ranks."""
        return self._reduce_scattered(output, given, [output.numel()] * self._comm.size, opts)

    def _reduce_scattered(
        self, output: torch.Tensor, given: torch.Tensor, counts: list[int], opts: Any
    ) -> RequestGroup:
        combine = operation(reduction_name(opts.reduceOp), given.dtype)
        all_of_them, mine = typed(given), typed(output)
        request = self._comm.Ireduce_scatter(all_of_them, mine, counts, combine)
        return RequestGroup([request], tensors=[output], buffers=[all_of_them, mine, counts])

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> RequestGroup:
        """Send a tensor from every rank to every rank."""
        landing, given = _Landing(outputs), _packed(inputs)
        request = self._comm.Ialltoallv(given, landing.buffer)
        return RequestGroup([request], landing.unpack, outputs, given)

    def alltoall_base(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> RequestGroup:
        """Send some rows of each rank's tensor to every rank."""
        mine, theirs = self._by_rows(given, input_splits), self._by_rows(output, output_splits)
        request = self._comm.Ialltoallv(mine, theirs)
        return RequestGroup([request], tensors=[output], buffers=[mine, theirs])

    def _by_rows(self, tensor: torch.Tensor, splits: Sequence[int]) -> list[Any]:
        size, rows = self._comm.size, tensor.shape[0] if tensor.dim() else 1
        row = tensor.nbytes // rows if rows else 0
        return _counted(raw(tensor), [row * n for n in splits or [rows // size] * size])

    def barrier(self, opts: Any = None) -> RequestGroup:
        """Hold each rank until all have called."""
        return RequestGroup([self._comm.Ibarrier()])


class _Landing:
    """A single piece of memory in which several tensors arrive."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._sizes = [tensor.nbytes for tensor in tensors]
        self._bytes = torch.empty(sum(self._sizes), dtype=torch.uint8)
        self.buffer = _counted(self._bytes.numpy(), self._sizes)

    def unpack(self) -> None:
        """Copy the data to the tensors."""
        with torch.no_grad():
            parts = torch.split(self._bytes, self._sizes)
            for tensor, part in zip(self._tensors, parts, strict=True):
                # a copy is aligned, as a slice of the bytes need not be
                tensor.copy_(part.clone().view(tensor.dtype).view(tensor.shape))


def _packed(tensors: Tensors) -> list[Any]:
    """Return several tensors as a single piece of memory."""
    parts = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in tensors]
    return _counted(torch.cat(parts).numpy(), [part.numel() for part in parts])


def _counted(memory: Any, counts: list[int]) -> list[Any]:
    starts = [0, *accumulate(counts)][:-1]
    return [memory, (counts, starts), MPI.BYTE]


# The backend. ---------------------------------------------------------------------


def _unlink_segments() -> None:
    """Remove the names of MPICH's shared memory, which stays until its ranks have ended.

    MPICH removes them in ``MPI_Finalize``, which ranks that are killed never reach; it names a
    segment by a hash of its job, and a later job of the same hash would attach the segment of the
    dead one and wait for ever.  Where there is no ``/proc``, nothing tells the names.
    """
    try:
        mapped = Path("/proc/self/maps").read_text()
    except OSError:
        return
    for name in set(re.findall(r"/dev/shm/mpich_\w+$", mapped, re.MULTILINE)):
        with contextlib.suppress(FileNotFoundError):  # another rank was faster
            os.unlink(name)


#: Bits of the tag by which the members of a new communicator connect; MPI has at least 15.
_TAG_BITS = 15


class Mpi:
    """The MPI backend, for processes that ``mpiexec`` knows."""

    name = "mpi"
    coalesces = False
    gloo_tensors = False

    def device(self, rank: int) -> torch.device:
        """Return the CPU."""
        return torch.device("cpu")

    def prepare(self, rank: int, size: int) -> None:
        """Do nothing."""

    def connect(
        self,
        store: c10d.Store,
        rank: int,
        size: int,
        members: Sequence[int],
        whole: bool,
        limit: timedelta,
    ) -> Any:
        """Return a group on a communicator of the members."""
        import mpi4py

        # ranks are killed, so that MPI is never finalized
        mpi4py.rc.finalize = False
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise RuntimeError("this MPI cannot be called from several threads")
        if whole:
            if (world.rank, world.size) != (rank, size):
                raise RuntimeError(
                    f"mpiexec knows this process as rank {world.rank} of {world.size},"
                    f" and not as rank {rank} of {size}"
                )
            group = MpiGroup(world.Dup())  # when it returns, every rank has attached the segment
            _unlink_segments()
            return group
        tag = zlib.crc32(repr(list(members)).encode()) >> (32 - _TAG_BITS)
        return MpiGroup(world.Create_group(world.group.Incl(list(members)), tag))


BACKEND = Mpi()
