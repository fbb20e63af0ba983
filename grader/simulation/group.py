"""The process group of simulated ranks: one object, and every rank sees itself in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from grader.core.events import ANY
from grader.core.source_locations import line_here
from grader.rank.addressing import require_peer, require_tag
from grader.simulation.builtin import Builtins
from grader.simulation.collectives import Collectives
from grader.simulation.mailboxes import Hub
from grader.simulation.requests import Request, channel_of
from grader.simulation.trace_recorder import Tapped

__all__ = ["SimulatedGroup", "require_message"]


class SimulatedGroup(Collectives, dist.ProcessGroup):  # type: ignore[misc]
    """Some ranks of a hub, as ``torch.distributed`` sees them.

    Args:
        hub: where they live.
        members: global ranks, by rank in the group.
        name: tells its messages from those of other groups.
        builtins: the collectives of its simulation.
    """

    #: asked by ``batch_isend_irecv`` of torch ≥ 2.14: it then calls isend and irecv
    supports_coalescing = False

    def __init__(self, hub: Hub, members: Sequence[int], name: str, builtins: Builtins) -> None:
        # the one constructor that torch lets a Python subclass use
        super().__init__(0, len(members))  # type: ignore[call-arg]
        self._hub = hub
        self._members = list(members)
        self._places = {member: place for place, member in enumerate(members)}
        self._name = name
        self._desc = ""
        self._found(builtins)

    def rank(self) -> int:
        """The place of the rank that runs now; −1 if it is no member."""
        return self._places.get(self._hub.current.number, -1)

    def size(self) -> int:
        """How many ranks it has."""
        return len(self._members)

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """What torch's own C++ may know of it: no gloo."""
        return "simulated gloo"

    def getGroupName(self) -> str:  # noqa: N802
        """The name by which torch finds the group."""
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Its name is the hub's, whatever torch would call it."""

    def getGroupDesc(self) -> str:  # noqa: N802
        """Torch's description of the group."""
        return self._desc

    def setGroupDesc(self, desc: str) -> None:  # noqa: N802
        """Torch describes the group after making it."""
        self._desc = desc

    @property
    def _device_types(self) -> list[torch.device]:
        """Where its tensors live."""
        return [torch.device("cpu")]

    def _get_backend(self, device: torch.device) -> SimulatedGroup:  # type: ignore[override]
        """This group: there is nothing below it."""
        return self

    get_backend = _get_backend  # the public name, since torch 2.14

    def mark(self, text: str) -> None:
        """The rank that runs is at a named place, see :func:`grader.core.marks.mark`."""
        if self._hub.tap is not None:
            self._hub.tap.mark(text)

    def send(  # type: ignore[override]
        self, tensors: list[torch.Tensor], dst: int, tag: int
    ) -> Request | Tapped:
        """Send to rank ``dst`` of the group."""
        (tensor,) = tensors
        require_message(tensor, "send")
        self._require_there()
        require_peer(dst, self.rank(), len(self._members))
        require_tag(tag)
        channel, to = channel_of(self._hub.current.number, tag, self._name), self._members[dst]
        return self._posted(
            "send", tensor, to, tag, lambda: self._hub.post_send(tensor, to, channel)
        )

    def recv(  # type: ignore[override]
        self, tensors: list[torch.Tensor], src: int, tag: int
    ) -> Request | Tapped:
        """Receive from rank ``src`` of the group."""
        (tensor,) = tensors
        require_message(tensor, "recv")
        self._require_there()
        require_tag(tag)
        require_peer(src, self.rank(), len(self._members))
        source = self._members[src]
        channel = channel_of(source, tag, self._name)
        return self._posted(
            "recv", tensor, source, tag, lambda: self._hub.post_receive(tensor, source, channel)
        )

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Any:
        """Receive from any rank of the group."""
        (tensor,) = tensors
        require_message(tensor, "recv")
        self._require_there()
        require_tag(tag)
        sort = (tag, self._name)
        request = self._posted(
            "recv", tensor, ANY, tag, lambda: self._hub.post_receive_from_anybody(tensor, sort)
        )
        return _FromAnybody(request, self._places)

    def _posted(
        self, kind: str, tensor: torch.Tensor, peer: int, tag: int, post: Callable[[], Request]
    ) -> Request | Tapped:
        """One end of a message, told of if somebody listens."""
        tap = self._hub.tap
        number = 0 if tap is None else tap.post(kind, tensor, peer, tag, self._name)
        request = post()
        request.place = line_here()[:2]
        self._hub.open[request] = None
        return request if tap is None else tap.follow(request, number, peer)


class _FromAnybody:
    """A receive from any rank, which names its source by its place in the group."""

    def __init__(self, request: Request | Tapped, places: dict[int, int]) -> None:
        self._request = request
        self._places = places
        self.wait = request.wait
        self.is_completed = request.is_completed
        self.is_success = request.is_success

    def source_rank(self) -> int:
        """The rank in the group that the message came from."""
        return self._places[self._request.peer]

    _source_rank = source_rank


def require_message(tensor: torch.Tensor, what: str) -> None:
    """Make sure that a tensor is one that gloo would take.

    Raises:
        ValueError: it is not.
    """
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise ValueError(f"{what} needs a dense CPU tensor here, not one on {tensor.device}")
    if not tensor.is_contiguous():
        raise ValueError(f"{what} needs a contiguous tensor; call .contiguous() first")
