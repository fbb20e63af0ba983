"""The process group of simulated ranks: one object, which all ranks of the group share."""

# of the overloads in torch's stubs, each method takes the one that torch.distributed calls
# mypy: disable-error-code="override"

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from headcount.core.events import ANY, Same, Signature
from headcount.core.source_locations import line_here
from headcount.core.values import tensors_in
from headcount.core.verdict import Site
from headcount.rank.arguments import (
    COLLECTIVES,
    destroyed_text,
    require_message,
    require_peer,
    require_rank,
    require_tag,
    signatures,
)
from headcount.rank.torch_group import TorchGroup
from headcount.simulation.builtin import (
    SUBTREE_END,
    Blocks,
    BuiltinCall,
    Builtins,
    Communicator,
    Reduction,
    Span,
    Tensors,
    Work,
    channel_name,
    even_blocks,
    sized_blocks,
)
from headcount.simulation.scheduler import SimulatedRequest
from headcount.simulation.world import RecordedRequest, SimulatedWorld, channel_of

__all__ = ["SimulatedGroup"]


# Tensors as the algorithms want them: flat and contiguous. ------------------------


def _real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor, of complex numbers as pairs of real ones."""
    tensor = tensor.detach()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor's elements in the order in which they lie in memory, as a view."""
    tensor = _real(tensor)
    return tensor.as_strided((tensor.numel(),), (1,))


def read(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's elements by index: a view if it is contiguous, and else a copy."""
    return _real(tensor).contiguous().view(-1)


def fill(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """Copy flat data into a tensor of any strides, unless they are its own memory."""
    tensor = _real(tensor)
    if not tensor.is_contiguous() or tensor.data_ptr() != data.data_ptr():
        tensor.copy_(data.view(tensor.shape))


def pieces(tensor: torch.Tensor, sizes: Sequence[int], count: int) -> Blocks:
    """Cut a tensor into ``count`` blocks, of these rows or of one number of elements."""
    data = flat(tensor)
    if not sizes:
        return even_blocks(data, count)
    row = tensor[0].numel() if tensor.numel() else 0
    return sized_blocks(data, [size * row for size in sizes])


def _from_root(tensors: list[torch.Tensor], root: int) -> list[torch.Tensor]:
    """Return tensors by rank in a communicator, whose ranks are numbered from the root."""
    return tensors[root:] + tensors[:root]


# The group. -----------------------------------------------------------------------

#: Runs a collective for one rank.
_Run = Callable[[Communicator], None]

#: Methods that a simulation lacks, and what to call instead.
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


class SimulatedGroup(TorchGroup):
    """A process group of simulated ranks, as ``torch.distributed`` sees it.

    Each method acts for the rank that runs when it is called.

    Args:
        world: the simulated world that the ranks belong to.
        members: the global ranks, indexed by rank in the group.
        name: the group's name, which keeps its messages apart from those of other groups.
        builtins: the state of the built-in collectives, shared by all groups of the world.
    """

    def __init__(
        self, world: SimulatedWorld, members: Sequence[int], name: str, builtins: Builtins
    ) -> None:
        super().__init__(0, len(members), members, name)
        self._world = world
        self._places = {member: place for place, member in enumerate(members)}
        self._builtins = builtins
        #: by place, the collectives that run beside the rank, and those that will after them
        self._queues: dict[int, deque[tuple[_Run, Communicator, Work]]] = {}
        #: by rank, the line on which it has destroyed the group
        self._destroyed: dict[int, int] = {}
        #: by root, the members in the order in which a communicator numbers them
        self._seen_from = {0: self._members}
        builtins.found(name, self._members)

    # What torch asks a group about itself. -----------------------------------

    def rank(self) -> int:
        """Return the rank in the group of the rank that runs now, or −1 if it is not a member."""
        return self._places.get(self._world.running().number, -1)

    def size(self) -> int:
        """Return the number of ranks in the group."""
        return len(self._members)

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """Return a name other than ``gloo``, for which torch's C++ would expect a gloo backend."""
        return "simulated gloo"

    def getGroupName(self) -> str:  # noqa: N802
        """Return the name by which torch finds the group."""
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Ignore torch's name of the group: it keeps the simulated world's."""

    def mark(self, text: str) -> None:
        """Record that the running rank is at a named place; see :func:`headcount.mark`."""
        if self._world.recorder is not None:
            self._world.recorder.mark(text)

    def same(self, event: Same) -> None:
        """Record what the running rank holds of a value; see :func:`headcount.same`."""
        self._builtins.same.append((self._world.running().number, event))

    def destroy(self, line: int) -> None:
        """Record that the running rank has destroyed the group; the other ranks keep it."""
        self._require_there()
        self._destroyed[self._world.running().number] = line

    def _require_there(self) -> None:
        line = self._destroyed.get(self._world.running().number)
        if line is not None:
            raise ValueError(destroyed_text(self._members, line))

    # Point to point. ---------------------------------------------------------

    def send(
        self, tensors: list[torch.Tensor], dst: int, tag: int
    ) -> SimulatedRequest | RecordedRequest:
        """Send to rank ``dst`` of the group."""
        (tensor,) = tensors
        require_message(tensor, "send")
        self._require_there()
        require_peer(dst, self.rank(), len(self._members))
        require_tag(tag)
        to = self._members[dst]
        channel = channel_of(self._world.running().number, tag, self._name)
        self._world.require_connected(self._name, to)
        return self._posted(
            "send", tensor, to, tag, lambda: self._world.post_send(tensor, to, channel)
        )

    def recv(
        self, tensors: list[torch.Tensor], src: int, tag: int, shown: torch.Tensor | None = None
    ) -> SimulatedRequest | RecordedRequest:
        """Receive from rank ``src`` of the group; the record names the tensor ``shown`` instead."""
        (tensor,) = tensors
        require_message(tensor, "recv")
        self._require_there()
        require_tag(tag)
        require_peer(src, self.rank(), len(self._members))
        source = self._members[src]
        channel = channel_of(source, tag, self._name)
        self._world.require_connected(self._name, source)
        return self._posted(
            "recv",
            tensor if shown is None else shown,
            source,
            tag,
            lambda: self._world.post_receive(tensor, source, channel),
        )

    def recv_anysource(
        self,
        tensors: list[torch.Tensor],
        tag: int,
        shown: torch.Tensor | None = None,
        only: int = ANY,
    ) -> Any:
        """Receive from any rank of the group; the record names the tensor ``shown`` instead.

        ``only`` is that of :meth:`SimulatedWorld.post_wildcard_receive`.
        """
        (tensor,) = tensors
        require_message(tensor, "recv")
        self._require_there()
        require_tag(tag)
        key = (tag, self._name)
        self._world.require_connected(self._name, ANY)
        request = self._posted(
            "recv",
            tensor if shown is None else shown,
            ANY,
            tag,
            lambda: self._world.post_wildcard_receive(tensor, key, only),
        )
        return _WildcardRequest(request, self._places)

    def _posted(
        self,
        kind: str,
        tensor: torch.Tensor,
        peer: int,
        tag: int,
        post: Callable[[], SimulatedRequest],
    ) -> SimulatedRequest | RecordedRequest:
        """Post one end of a message, and report it if the world has a recorder."""
        recorder = self._world.recorder
        number = 0 if recorder is None else recorder.post(kind, tensor, peer, tag, self._name)
        request = post()
        request.place, request.group = line_here()[:2], self._name
        self._world.open[request] = None
        return request if recorder is None else recorder.follow(request, number, peer)

    # How any collective is called, run and waited for. -----------------------
    #
    # A collective runs when it is called, in the greenlet of its rank.  With ``async_op=True`` it
    # runs in a greenlet of its own, which uses the rank's ports.  Collectives that the rank calls
    # on the same group before that one is complete follow it there, one after the other: all
    # ranks carry out the collectives of a group in the same order.

    def _checked(self, method: str, *arguments: Any, root: int | None = None) -> list[Signature]:
        """Return the signatures of a call, by the rules of real ranks on gloo.

        Raises:
            ForbiddenCall: it is not allowed.
            RuntimeError, ValueError, TypeError: see :func:`headcount.rank.arguments.signatures`.
        """
        self._require_there()
        me, kind, size = self._world.running().number, COLLECTIVES[method], len(self._members)
        self._builtins.require_allowed(me, kind)
        if root is not None:
            require_rank(root, size)
        place, first = self._places[me], -1 if root is None else root
        found = signatures(
            method, kind, arguments, rank=me, place=place, size=size, root=first, gloo=True
        )
        self._builtins.require_apart(me, kind, tensors_in(arguments[:1]))
        return found

    def _algorithm(self, kind: str) -> Callable[..., None]:
        return self._builtins.function(kind)

    def _begin(
        self,
        kind: str,
        options: Any,
        run: _Run,
        results: list[Any],
        *,
        signed: list[Signature],
        root: int | None = None,
        detail: str = "",
    ) -> Work:
        """Run a collective, or queue it behind the ones that run beside the rank.

        Args:
            kind: name of the collective.
            options: torch's options, or ``None``; they say whether the call is asynchronous.
            run: carries out the collective for the calling rank.
            results: the tensors that it writes.
            signed: its signatures.
            root: the root's rank in the group, if there is one.
            detail: what else all ranks must agree on, such as the reduction.

        Raises:
            Disagreement: another rank makes a different call.
        """
        world, builtins = self._world, self._builtins
        me = world.running().number
        place, peer = self._places[me], ANY if root is None else self._members[root]
        call = BuiltinCall(me, kind, self._name, peer, detail, signed, Site(*line_here()[:2]))
        builtins.join(call)
        work = Work(world, world.running(), call, results)
        comm = self._communicator(place, root or 0)
        queue = self._queues.get(place)
        if queue is not None:
            queue.append((run, comm, work))
        elif getattr(options, "asyncOp", True):
            self._queues[place] = deque([(run, comm, work)])
            world.start(lambda: self._run_queue(place))
        else:
            builtins.inside[me] = call
            try:
                run(comm)
            finally:
                del builtins.inside[me]
            world.complete(work)
        return work

    def _run_queue(self, place: int) -> None:
        queue = self._queues[place]
        while queue:
            run, comm, work = queue[0]
            run(comm)
            queue.popleft()
            self._world.complete(work)
        del self._queues[place]

    def _communicator(self, place: int, root: int) -> Communicator:
        """Return the communicator of one call; its ranks are numbered from the root."""
        members = self._seen_from.get(root)
        if members is None:
            members = self._seen_from[root] = self._members[root:] + self._members[:root]
        size = len(members)
        return Communicator(self._world, members, (place - root) % size, channel_name(self._name))

    # The collectives, by all the names that torch 2.11 to 2.15 call them by. ---

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        """Copy the root's tensor to all ranks."""
        root = opts.rootRank
        signed = self._checked("broadcast", tensors, opts, root=root)
        data, algorithm = flat(tensors[0]), self._algorithm("broadcast")

        def run(comm: Communicator) -> None:
            algorithm(comm, data)

        return self._begin("broadcast", opts, run, tensors, signed=signed, root=root)

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        """Reduce the tensors of all ranks, onto all of them."""
        signed = self._checked("allreduce", tensors, opts)
        data, algorithm = flat(tensors[0]), self._algorithm("all_reduce")
        reduction = Reduction(opts)

        def run(comm: Communicator) -> None:
            algorithm(comm, data, reduction.combine)
            reduction.finish(data, comm.size)

        return self._begin("all_reduce", opts, run, tensors, signed=signed, detail=reduction.name)

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        """Reduce the tensors onto the root; those of other ranks stay as they are."""
        root = opts.rootRank
        signed = self._checked("reduce", tensors, opts, root=root)
        data, algorithm = flat(tensors[0]), self._algorithm("reduce")
        reduction = Reduction(opts)

        def run(comm: Communicator) -> None:
            algorithm(comm, data.clone() if comm.rank else data, reduction.combine)
            if not comm.rank:
                reduction.finish(data, comm.size)

        return self._begin(
            "reduce", opts, run, tensors, signed=signed, root=root, detail=reduction.name
        )

    def allgather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        """Gather the tensors of all ranks onto all of them, into a list."""
        signed = self._checked("allgather", outputs, inputs, opts)
        (into,), data = outputs, read(inputs[0])
        whole = data.new_empty(data.numel() * len(into))

        def run(comm: Communicator) -> None:
            blocks = self._all_gather(comm, whole, data)
            for place, output in enumerate(into):
                fill(output, blocks[place])

        return self._begin("all_gather", opts, run, into, signed=signed)

    def all_gather_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Work:
        """Gather the tensors of all ranks onto all of them, into one tensor."""
        signed = self._checked("all_gather_single", output, tensor, opts)
        data, whole = read(tensor), read(output)

        def run(comm: Communicator) -> None:
            self._all_gather(comm, whole, data)
            fill(output, whole)

        return self._begin("all_gather", opts, run, [output], signed=signed)

    def _all_gather(self, comm: Communicator, whole: torch.Tensor, data: torch.Tensor) -> Blocks:
        blocks = even_blocks(whole, comm.size)
        blocks[comm.rank].copy_(data)
        self._algorithm("all_gather")(comm, blocks)
        return blocks

    def reduce_scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None
    ) -> Work:
        """Reduce onto each rank the tensors at its place in the lists of all ranks."""
        signed = self._checked("reduce_scatter", outputs, inputs, opts)
        return self._reduce_scatter(outputs[0], list(map(read, inputs[0])), opts, signed)

    def reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None
    ) -> Work:
        """Reduce onto each rank the parts at its place in the tensors of all ranks."""
        signed = self._checked("reduce_scatter_single", output, tensor, opts)
        parts = read(tensor).chunk(len(self._members))
        return self._reduce_scatter(output, parts, opts, signed)

    def _reduce_scatter(
        self,
        output: torch.Tensor,
        parts: Sequence[torch.Tensor],
        opts: Any,
        signed: list[Signature],
    ) -> Work:
        """Reduce the parts of all ranks, of which the algorithm overwrites a copy."""
        used, place, reduction = torch.cat(list(parts)), self._place(), Reduction(opts)
        algorithm, name = self._algorithm("reduce_scatter"), reduction.name

        def run(comm: Communicator) -> None:
            blocks = sized_blocks(used, [part.numel() for part in parts])
            algorithm(comm, blocks, reduction.combine)
            reduction.finish(blocks[place], comm.size)
            fill(output, blocks[place])

        return self._begin("reduce_scatter", opts, run, [output], signed=signed, detail=name)

    def alltoall(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        """Send a tensor from every rank to every rank, in lists."""
        signed = self._checked("alltoall", outputs, inputs, opts)
        received, sent = list(map(read, outputs)), list(map(read, inputs))
        return self._all_to_all(received, sent, outputs, opts, signed)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> Work:
        """Send a part of each rank's tensor to every rank."""
        arguments = output, tensor, output_splits, input_splits, opts
        signed, size = self._checked("all_to_all_single", *arguments), len(self._members)
        received = pieces(output, output_splits, size)
        sent = pieces(tensor, input_splits, size)
        even = not output_splits and not input_splits
        return self._all_to_all(received, sent, [output], opts, signed, even)

    alltoall_base = all_to_all_single  # type: ignore[assignment]

    def _all_to_all(
        self,
        received: Tensors,
        sent: Tensors,
        outputs: list[torch.Tensor],
        opts: Any,
        signed: list[Signature],
        even: bool = False,
    ) -> Work:
        """Exchange blocks; ``even`` says that the call itself makes all of one size."""
        algorithm, detail = self._algorithm("all_to_all"), ""
        uneven = None if even else self._builtins.algorithm_of_uneven()
        if uneven is not None:
            # an algorithm that forwards blocks must know the sizes of all of them
            algorithm, detail = uneven, "a size for every block"

        def run(comm: Communicator) -> None:
            algorithm(comm, received, sent)
            if not isinstance(received, Blocks):
                for output, data in zip(outputs, received, strict=True):
                    fill(output, data)

        return self._begin("all_to_all", opts, run, outputs, signed=signed, detail=detail)

    def barrier(self, opts: Any = None) -> Work:
        """Hold each rank until all have called."""
        signed = self._checked("barrier")
        return self._begin("barrier", opts, self._algorithm("barrier"), [], signed=signed)

    def monitored_barrier(self, *_: Any, **__: Any) -> None:
        """Run a barrier: a simulation always finds the ranks that are missing from one."""
        self.barrier().wait()

    def _place(self) -> int:
        return self._places[self._world.running().number]

    _allgather_base = all_gather_single  # type: ignore[assignment]
    _reduce_scatter_base = reduce_scatter_single  # type: ignore[assignment]

    def scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any
    ) -> Work:
        """Send each rank one of the root's tensors."""
        root = opts.rootRank
        signed = self._checked("scatter", outputs, inputs, opts, root=root)
        mine, algorithm = flat(outputs[0]), self._algorithm("scatter")
        sent = inputs[0] if inputs else []

        def run(comm: Communicator) -> None:
            buffer, span = self._subtree_buffer(comm, mine)
            if not comm.rank:
                torch.cat(list(map(flat, _from_root(sent, root))), out=buffer)
            algorithm(comm, span)
            mine.copy_(buffer[: mine.numel()])

        return self._begin("scatter", opts, run, outputs, signed=signed, root=root)

    def gather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any
    ) -> Work:
        """Gather the tensors of all ranks onto the root."""
        root = opts.rootRank
        signed = self._checked("gather", outputs, inputs, opts, root=root)
        mine, algorithm = read(inputs[0]), self._algorithm("gather")
        into = outputs[0] if outputs else []

        def run(comm: Communicator) -> None:
            buffer, span = self._subtree_buffer(comm, mine)
            buffer[: mine.numel()] = mine
            algorithm(comm, span)
            for place, output in enumerate(_from_root(into, root)):
                fill(output, span(place, place + 1))

        return self._begin("gather", opts, run, into, signed=signed, root=root)

    def _subtree_buffer(self, comm: Communicator, mine: torch.Tensor) -> tuple[torch.Tensor, Span]:
        """Return a buffer for the blocks of a rank's subtree, and the span function over it."""
        rank, per = comm.rank, mine.numel()
        buffer = mine.new_empty(per * (self._builtins.function(SUBTREE_END)(comm) - rank))

        def span(first: int, last: int) -> torch.Tensor:
            return buffer[(first - rank) * per : (last - rank) * per]

        return buffer, span


def _refusal(method: str) -> Callable[..., NoReturn]:
    def call(self: SimulatedGroup, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(f"a simulation has no {method}; call {_INSTEAD[method]} instead")

    call.__name__ = method
    call.__doc__ = f"Refuse ``{method}``."
    return call


for _method in _INSTEAD:
    setattr(SimulatedGroup, _method, _refusal(_method))


class _WildcardRequest:
    """A receive from any rank, which names its source by its rank in the group."""

    def __init__(self, request: SimulatedRequest | RecordedRequest, places: dict[int, int]) -> None:
        self._request = request
        self._places = places
        self.wait = request.wait
        self.is_completed = request.is_completed
        self.is_success = request.is_success

    @property
    def peer(self) -> int:
        """The global rank at the other end; −1 before that is known."""
        return self._request.peer

    def source_rank(self) -> int:
        """Return the rank in the group that the message came from."""
        return self._places[self._request.peer]

    _source_rank = source_rank
