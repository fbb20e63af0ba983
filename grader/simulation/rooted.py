"""Scatter and gather of a simulated process group, as torch calls them."""

from __future__ import annotations

from typing import Any

import torch

from grader.simulation.algorithms import trees
from grader.simulation.algorithms.scatter import Span
from grader.simulation.async_collectives import Begun
from grader.simulation.buffers import fill, flat, require_length, require_one_each
from grader.simulation.builtin import Work
from grader.simulation.communicator import Communicator

__all__ = ["Rooted"]


class Rooted(Begun):
    """The collectives in which the root has a tensor for every rank, and the others one."""

    def scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any
    ) -> Work:
        """One of the root's tensors for each."""
        self._allow("scatter")
        (output,) = outputs
        mine, root, algorithm = flat(output, "scatter"), opts.rootRank, self._algorithm("scatter")
        sent = self._of_all("scatter_list", inputs, mine)

        def run(comm: Communicator) -> None:
            buffer, span = _room(comm, mine)
            if not comm.rank:
                torch.cat([t.detach().reshape(-1) for t in _turned(sent, root)], out=buffer)
            algorithm(comm, span)
            mine.copy_(buffer[: mine.numel()])

        signed = "scatter", outputs, inputs
        return self._begin("scatter", opts, run, outputs, signed=signed, root=root)

    def gather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any
    ) -> Work:
        """Everybody's tensor, on the root."""
        self._allow("gather")
        (tensor,) = inputs
        mine, root, algorithm = flat(tensor, "gather"), opts.rootRank, self._algorithm("gather")
        into = self._of_all("gather_list", outputs, mine)

        def run(comm: Communicator) -> None:
            buffer, span = _room(comm, mine)
            buffer[: mine.numel()] = mine
            algorithm(comm, span)
            for place, output in enumerate(_turned(into, root)):
                fill(output, span(place, place + 1))

        signed = "gather", outputs, inputs
        return self._begin("gather", opts, run, into, signed=signed, root=root)

    def _of_all(
        self, what: str, lists: list[list[torch.Tensor]], mine: torch.Tensor
    ) -> list[torch.Tensor]:
        """The root's tensors; none on other ranks."""
        if not lists or not lists[0]:
            return []
        (tensors,) = lists
        require_one_each(what, tensors, len(self._members))
        for place, tensor in enumerate(tensors):
            require_length(f"{what}[{place}]", tensor, mine, mine.numel())
        return tensors


def _turned(tensors: list[torch.Tensor], root: int) -> list[torch.Tensor]:
    """By rank in a communicator, which counts from the root."""
    return tensors[root:] + tensors[:root]


def _room(comm: Communicator, mine: torch.Tensor) -> tuple[torch.Tensor, Span]:
    """Room for the blocks of a rank's subtree, and how an algorithm asks for them."""
    rank, per = comm.rank, mine.numel()
    buffer = mine.new_empty(per * (trees.end(comm) - rank))

    def span(first: int, last: int) -> torch.Tensor:
        return buffer[(first - rank) * per : (last - rank) * per]

    return buffer, span
