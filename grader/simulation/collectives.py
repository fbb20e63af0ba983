"""The collective methods of a simulated process group, as torch calls them.

They carry all the names that torch 2.11 to 2.15 call them by, see
:mod:`grader.rank.recording_group`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from grader.simulation.algorithms.all_to_all import Tensors
from grader.simulation.algorithms.blocks import Blocks, even, of_sizes
from grader.simulation.algorithms.reductions import Reduction, reduction_of
from grader.simulation.buffers import fill, flat, pieces, require_length, require_one_each
from grader.simulation.builtin import Work
from grader.simulation.communicator import Communicator
from grader.simulation.rooted import Rooted

__all__ = ["Collectives"]

#: Methods that there are not here, and what to call instead.
_INSTEAD = {
    **dict.fromkeys(
        (
            "allreduce_coalesced",
            "allgather_coalesced",
            "allgather_into_tensor_coalesced",
            "all_gather_single_coalesced",
            "reduce_scatter_tensor_coalesced",
            "reduce_scatter_single_coalesced",
            "_start_coalescing",
            "_end_coalescing",
        ),
        "the operations one by one",
    ),
    **dict.fromkeys(("gather_into_tensor", "gather_single"), "dist.gather"),
    **dict.fromkeys(
        ("split_group", "merge_remote_group", "new_window", "reconfigure"), "dist.new_group"
    ),
}


class Collectives(Rooted):
    """The collective half of a :class:`~grader.simulation.group.SimulatedGroup`."""

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        """From the root to all."""
        self._allow("broadcast")
        (tensor,) = tensors
        data, algorithm = flat(tensor, "broadcast"), self._algorithm("broadcast")

        def run(comm: Communicator) -> None:
            algorithm(comm, data)

        signed = "broadcast", tensors
        return self._begin("broadcast", opts, run, tensors, signed=signed, root=opts.rootRank)

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        """The reduction, on all."""
        self._allow("all_reduce")
        (tensor,) = tensors
        data, algorithm = flat(tensor, "all_reduce"), self._algorithm("all_reduce")
        reduction = _reduction(opts, data)

        def run(comm: Communicator) -> None:
            algorithm(comm, data, reduction.combine)
            reduction.finish(data, comm.size)

        signed, name = ("allreduce", tensors), reduction.name
        return self._begin("all_reduce", opts, run, tensors, signed=signed, detail=name)

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        """The reduction, on the root; the others' tensors stay as they are."""
        self._allow("reduce")
        (tensor,) = tensors
        data, algorithm = flat(tensor, "reduce"), self._algorithm("reduce")
        reduction, root = _reduction(opts, data), opts.rootRank

        def run(comm: Communicator) -> None:
            algorithm(comm, data.clone() if comm.rank else data, reduction.combine)
            if not comm.rank:
                reduction.finish(data, comm.size)

        signed, name = ("reduce", tensors), reduction.name
        return self._begin("reduce", opts, run, tensors, signed=signed, root=root, detail=name)

    def allgather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        """Everybody's tensor, on all, in a list."""
        self._allow("all_gather")
        (into,), (tensor,) = outputs, inputs
        data = flat(tensor, "all_gather")
        require_one_each("the output of all_gather", into, len(self._members))
        for place, output in enumerate(into):
            require_length(f"output {place} of all_gather", output, data, data.numel())
        whole = data.new_empty(data.numel() * len(into))

        def run(comm: Communicator) -> None:
            blocks = self._all_gather(comm, whole, data)
            for place, output in enumerate(into):
                fill(output, blocks[place])

        return self._begin("all_gather", opts, run, into, signed=("allgather", outputs, inputs))

    def all_gather_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Work:
        """Everybody's tensor, on all, in one tensor."""
        self._allow("all_gather")
        data, whole = flat(tensor, "all_gather"), flat(output, "the output of all_gather")
        require_length("the output of all_gather", whole, data, data.numel() * len(self._members))

        def run(comm: Communicator) -> None:
            self._all_gather(comm, whole, data)

        signed = "all_gather_single", output, tensor
        return self._begin("all_gather", opts, run, [output], signed=signed)

    def _all_gather(self, comm: Communicator, whole: torch.Tensor, data: torch.Tensor) -> Blocks:
        blocks = even(whole, comm.size)
        blocks[comm.rank].copy_(data)
        self._algorithm("all_gather")(comm, blocks)
        return blocks

    def reduce_scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None
    ) -> Work:
        """For each rank the reduction of the tensors that all have for it, from lists."""
        self._allow("reduce_scatter")
        (output,), (tensors,) = outputs, inputs
        require_one_each("the input of reduce_scatter", tensors, len(self._members))
        used = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        sizes, signed = [tensor.numel() for tensor in tensors], ("reduce_scatter", outputs, inputs)
        return self._reduce_scatter(output, used, sizes, opts, signed)

    def reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Work:
        """For each rank the reduction of the parts that all have for it, of one tensor."""
        self._allow("reduce_scatter")
        used, size = flat(tensor, "reduce_scatter").clone(), len(self._members)
        require_length("the input of reduce_scatter", used, output, output.numel() * size)
        signed = "reduce_scatter_single", output, tensor
        return self._reduce_scatter(output, used, [output.numel()] * size, opts, signed)

    def _reduce_scatter(
        self,
        output: torch.Tensor,
        used: torch.Tensor,
        sizes: Sequence[int],
        opts: Any,
        signed: tuple[Any, ...],
    ) -> Work:
        """``used`` is a copy of the blocks."""
        mine, place = flat(output, "the output of reduce_scatter"), self._place()
        require_length("the output of reduce_scatter", mine, used, sizes[place])
        reduction, algorithm = _reduction(opts, used), self._algorithm("reduce_scatter")
        name = reduction.name

        def run(comm: Communicator) -> None:
            blocks = of_sizes(used, sizes)
            algorithm(comm, blocks, reduction.combine)
            mine.copy_(blocks[place])
            reduction.finish(mine, comm.size)

        return self._begin("reduce_scatter", opts, run, [output], signed=signed, detail=name)

    def alltoall(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        """From every rank a tensor for every rank, in lists."""
        self._allow("all_to_all")
        for what, tensors in (("output", outputs), ("input", inputs)):
            require_one_each(f"the {what} of all_to_all", tensors, len(self._members))
        received = [flat(tensor, "the output of all_to_all") for tensor in outputs]
        sent = [flat(tensor, "the input of all_to_all") for tensor in inputs]
        signed = "alltoall", outputs, inputs
        return self._all_to_all(received, sent, outputs, opts, signed)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> Work:
        """From every rank a part of its tensor for every rank."""
        self._allow("all_to_all")
        size = len(self._members)
        received = pieces("the output of all_to_all", output, output_splits, size)
        sent = pieces("the input of all_to_all", tensor, input_splits, size)
        signed = "all_to_all_single", output, tensor, output_splits, input_splits
        even = not output_splits and not input_splits
        return self._all_to_all(received, sent, [output], opts, signed, even)

    alltoall_base = all_to_all_single

    def _all_to_all(
        self,
        received: Tensors,
        sent: Tensors,
        outputs: list[torch.Tensor],
        opts: Any,
        signed: tuple[Any, ...],
        even: bool = False,
    ) -> Work:
        """``even`` is whether all blocks have one size, which a rank knows without being told."""
        place = self._place()
        what = f"what rank {self._members[place]} keeps for itself in all_to_all"
        require_length(what, received[place], sent[place], sent[place].numel())
        algorithm, detail = self._algorithm("all_to_all"), ""
        if self._builtins.uneven is not None and not even:
            # an algorithm that passes blocks on has to know the sizes of all of them
            algorithm, detail = self._builtins.uneven, "a size for every block"

        def run(comm: Communicator) -> None:
            algorithm(comm, received, sent)

        return self._begin("all_to_all", opts, run, outputs, signed=signed, detail=detail)

    def barrier(self, opts: Any = None) -> Work:
        """Nobody goes on before everybody has come."""
        self._allow("barrier")
        return self._begin("barrier", opts, self._algorithm("barrier"), [], signed=("barrier",))

    def monitored_barrier(self, *_: Any, **__: Any) -> None:
        """A barrier: there is no need to monitor it, since who is missing is always found."""
        self.barrier().wait()

    def _place(self) -> int:
        return self._places[self._hub.current.number]

    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single


def _reduction(opts: Any, tensor: torch.Tensor) -> Reduction:
    return reduction_of(opts.reduceOp if opts is not None else dist.ReduceOp.SUM, tensor.dtype)


def _refusal(method: str) -> Callable[..., NoReturn]:
    def call(self: Collectives, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(f"a simulation has no {method}; call {_INSTEAD[method]} instead")

    call.__name__ = method
    call.__doc__ = f"Refuse ``{method}``."
    return call


for _method in _INSTEAD:
    setattr(Collectives, _method, _refusal(_method))
