"""A process group's methods on an MPI communicator.

Their arguments are those of torch's ``ProcessGroupGloo``: lists of one tensor,
lists of lists, and options.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
from mpi4py import MPI

from grader.transports.base import reduction_name
from grader.transports.reductions import operation, raw, typed

__all__ = ["MpiGroup", "Pending"]

Tensors = Sequence[torch.Tensor]

#: Seconds between two looks at a request: at first none, then more and more.
_FIRST_PAUSE, _LONGEST_PAUSE = 2e-5, 1e-3

#: Looks before the first pause.
_EAGER = 50


class Pending:
    """Requests of MPI's, waited for as one.

    MPI's own wait would keep a processor busy, and the message may have to
    come from a rank that needs it; this one looks, and sleeps in between.

    Args:
        requests: of MPI's.
        finish: what to do when they are complete.
        tensors: what the operation gives.
    """

    def __init__(
        self,
        requests: list[Any],
        finish: Callable[[], object] = lambda: None,
        tensors: Tensors = (),
    ) -> None:
        self._requests = requests
        self._finish = finish
        self._tensors = list(tensors)

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
        """A future that is complete when they are."""
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
        """The operation's tensors."""
        return self._tensors


class MpiGroup:
    """A communicator, with the methods of a process group.

    Sends are synchronous: they end when their receive is there, as gloo's do.
    MPI's standard send may take a copy instead and return, which hides a
    deadlock until messages grow.
    """

    def __init__(self, communicator: MPI.Intracomm) -> None:
        self._comm = communicator

    # Point to point. ---------------------------------------------------------

    def send(self, tensors: Tensors, dst: int, tag: int) -> Pending:
        """Send to rank ``dst``."""
        return Pending([self._comm.Issend([raw(tensors[0]), MPI.BYTE], dst, tag)])

    def recv(self, tensors: Tensors, src: int, tag: int) -> Pending:
        """Receive from rank ``src``."""
        return Pending([self._comm.Irecv([raw(tensors[0]), MPI.BYTE], src, tag)])

    # Collectives. ------------------------------------------------------------

    def broadcast(self, tensors: Tensors, opts: Any) -> Pending:
        """One tensor, from the root to everybody."""
        return Pending(
            [self._comm.Ibcast([raw(tensors[0]), MPI.BYTE], opts.rootRank)], tensors=tensors
        )

    def allreduce(self, tensors: Tensors, opts: Any) -> Pending:
        """Every rank's tensors combined, on everybody."""
        return Pending([self._all_reduced(tensor, opts) for tensor in tensors], tensors=tensors)

    def allreduce_coalesced(self, tensors: Tensors, opts: Any) -> Pending:
        """The same, of several tensors."""
        return self.allreduce(tensors, opts)

    def _all_reduced(self, tensor: torch.Tensor, opts: Any) -> Any:
        combine = operation(reduction_name(opts.reduceOp), tensor.dtype)
        return self._comm.Iallreduce(MPI.IN_PLACE, typed(tensor), combine)

    def reduce(self, tensors: Tensors, opts: Any) -> Pending:
        """Every rank's tensor combined, on the root; the others' stay as they are."""
        tensor, root = tensors[0], opts.rootRank
        combine = operation(reduction_name(opts.reduceOp), tensor.dtype)
        mine = typed(tensor)
        if self._comm.rank == root:
            request = self._comm.Ireduce(MPI.IN_PLACE, mine, combine, root)
        else:
            request = self._comm.Ireduce(mine, None, combine, root)
        return Pending([request], tensors=tensors)

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> Pending:
        """Every rank's tensor, on everybody."""
        landing = _Landing(outputs[0])
        _same_bytes(inputs[0], outputs[0][self._comm.rank])
        request = self._comm.Iallgatherv([raw(inputs[0]), MPI.BYTE], landing.buffer)
        return Pending([request], landing.unpack, outputs[0])

    def _allgather_base(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any = None
    ) -> Pending:
        """The same, into one tensor."""
        if output.nbytes != given.nbytes * self._comm.size:
            raise ValueError(
                f"all_gather of {given.numel()} elements on {self._comm.size} ranks gives"
                f" {given.numel() * self._comm.size}, and the output has {output.numel()}"
            )
        request = self._comm.Iallgather([raw(given), MPI.BYTE], [raw(output), MPI.BYTE])
        return Pending([request], tensors=[output])

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> Pending:
        """Every rank's tensor, on the root."""
        mine = [raw(inputs[0]), MPI.BYTE]
        if self._comm.rank != opts.rootRank:
            return Pending([self._comm.Igatherv(mine, None, opts.rootRank)])
        landing = _Landing(outputs[0])
        _same_bytes(inputs[0], outputs[0][self._comm.rank])
        request = self._comm.Igatherv(mine, landing.buffer, opts.rootRank)
        return Pending([request], landing.unpack, outputs[0])

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> Pending:
        """One tensor of the root's for each rank."""
        mine = [raw(outputs[0]), MPI.BYTE]
        if self._comm.rank != opts.rootRank:
            request = self._comm.Iscatterv(None, mine, opts.rootRank)
        else:
            _same_bytes(outputs[0], inputs[0][self._comm.rank])
            request = self._comm.Iscatterv(_packed(inputs[0]), mine, opts.rootRank)
        return Pending([request], tensors=outputs)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> Pending:
        """Every rank's lists combined; of the result each rank has the part at its place."""
        parts = inputs[0]
        _same_bytes(outputs[0], parts[self._comm.rank])
        flat = torch.cat([part.detach().reshape(-1) for part in parts])
        combine = operation(reduction_name(opts.reduceOp), flat.dtype)
        request = self._comm.Ireduce_scatter(
            typed(flat), typed(outputs[0]), [part.numel() for part in parts], combine
        )
        return Pending([request], tensors=outputs)

    def _reduce_scatter_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any) -> Pending:
        """The same, of one tensor."""
        if given.nbytes != output.nbytes * self._comm.size:
            raise ValueError(
                f"reduce_scatter of {given.numel()} elements on {self._comm.size} ranks gives"
                f" {given.numel() / self._comm.size:g} each, and the output has {output.numel()}"
            )
        combine = operation(reduction_name(opts.reduceOp), given.dtype)
        counts = [output.numel()] * self._comm.size
        request = self._comm.Ireduce_scatter(typed(given), typed(output), counts, combine)
        return Pending([request], tensors=[output])

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Pending:
        """One tensor from every rank to every other."""
        landing = _Landing(outputs)
        request = self._comm.Ialltoallv(_packed(inputs), landing.buffer)
        return Pending([request], landing.unpack, outputs)

    def alltoall_base(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> Pending:
        """The same, of the rows of one tensor."""
        request = self._comm.Ialltoallv(
            self._by_rows(given, input_splits), self._by_rows(output, output_splits)
        )
        return Pending([request], tensors=[output])

    def _by_rows(self, tensor: torch.Tensor, splits: Sequence[int]) -> list[Any]:
        size, rows = self._comm.size, tensor.shape[0] if tensor.dim() else 1
        if not splits and rows % size:
            raise ValueError(f"{rows} rows do not split evenly over {size} ranks; give the splits")
        if splits and (len(splits) != size or sum(splits) != rows):
            raise ValueError(f"{list(splits)} is no way to split {rows} rows over {size} ranks")
        row = tensor.nbytes // rows if rows else 0
        return _counted(raw(tensor), [row * n for n in splits or [rows // size] * size])

    def barrier(self, opts: Any = None) -> Pending:
        """Nobody leaves before all have come."""
        return Pending([self._comm.Ibarrier()])


class _Landing:
    """One piece of memory where several tensors arrive."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._sizes = [tensor.nbytes for tensor in tensors]
        self._bytes = torch.empty(sum(self._sizes), dtype=torch.uint8)
        self.buffer = _counted(self._bytes.numpy(), self._sizes)

    def unpack(self) -> None:
        """Copy them to where they belong."""
        with torch.no_grad():
            parts = torch.split(self._bytes, self._sizes)
            for tensor, part in zip(self._tensors, parts, strict=True):
                # a copy is aligned, which a part of the bytes need not be
                tensor.copy_(part.clone().view(tensor.dtype).view(tensor.shape))


def _packed(tensors: Tensors) -> list[Any]:
    """Several tensors as one piece of memory."""
    parts = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in tensors]
    return _counted(torch.cat(parts).numpy(), [part.numel() for part in parts])


def _counted(memory: Any, counts: list[int]) -> list[Any]:
    starts = [0, *accumulate(counts)][:-1]
    return [memory, (counts, starts), MPI.BYTE]


def _same_bytes(one: torch.Tensor, other: torch.Tensor) -> None:
    """Make sure that a tensor fits where it goes.

    Raises:
        ValueError: it does not.
    """
    if one.nbytes != other.nbytes:
        raise ValueError(
            f"{one.numel()} {one.dtype} elements do not fit {other.numel()} {other.dtype} elements"
        )
