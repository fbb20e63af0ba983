"""Descriptions of clusters: what a message between two of their ranks costs.

Times are in seconds, sizes in bytes: a message of S bytes takes α + S·β (Hockney,
*The communication challenge for MPP: Intel Paragon and Meiko CS-2*, 1994), and
1/β is a bandwidth in bytes per second *in one direction*.  A description holds
nothing but numbers, so that it travels to the process that simulates, and can
be kept in a file; :mod:`grader.simulation.presets` has some by name.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from grader.core.errors import RequestError
from grader.simulation.clock import ticks_of
from grader.simulation.flows import SharedLinks
from grader.simulation.network import Network, NodePorts, Places, Ports

__all__ = ["Cluster", "Flat", "Nodes", "Sharing"]

#: How several messages at a time use one link: one after the other, or each its fair share.
Sharing = Literal["fifo", "max-min"]


class Flat(msgspec.Struct, tag="flat", frozen=True, forbid_unknown_fields=True):
    """A cluster in which every pair of ranks is connected alike.

    Attributes:
        alpha: seconds that a message of no bytes takes.
        beta: seconds that each byte adds.
    """

    alpha: float = 1e-6
    beta: float = 1e-10

    def __post_init__(self) -> None:
        _require_time("alpha", self.alpha)
        _require_time("beta", self.beta)

    def network(self, size: int) -> Network:
        """Its network for ``size`` ranks, with nothing in it yet."""
        return Ports(size, ticks_of(self.alpha), ticks_of(self.beta))


class Nodes(msgspec.Struct, tag="nodes", frozen=True, forbid_unknown_fields=True):
    """A cluster of two levels: nodes that hold ranks, and links between the nodes.

    Every rank has one port to send and one to receive.  Every node has ``links``
    links to a network that is never full itself, each with its full bandwidth in
    both directions at a time; its ranks are assigned to them in turns.

    Attributes:
        ranks_per_node: how many ranks a node holds; the last may hold fewer.
        alpha_inside: seconds that a message of no bytes takes inside a node.
        beta_inside: seconds that each byte adds there.
        alpha_between: seconds that a message of no bytes takes between nodes.
        beta_between: seconds that each byte adds there, on a link of its own.
        links: of a node, such as its network cards.
        sharing: ``fifo``, a link carries one message at a time, or ``max-min``, all
            at a time, each with its fair share.
        order: the ranks in the order in which they fill the nodes; if empty, by number.
    """

    ranks_per_node: int
    alpha_inside: float
    beta_inside: float
    alpha_between: float
    beta_between: float
    links: int = 1
    sharing: Sharing = "fifo"
    order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _require_count("ranks_per_node", self.ranks_per_node)
        _require_count("links", self.links)
        for name in ("alpha_inside", "beta_inside", "alpha_between", "beta_between"):
            _require_time(name, getattr(self, name))
        # a frame and a file are checked for it as they are read; code is not
        if self.sharing not in ("fifo", "max-min"):
            raise RequestError(f"sharing is 'fifo' or 'max-min', not {self.sharing!r}")
        if sorted(self.order) != list(range(len(self.order))):
            raise RequestError(
                f"order names each rank from 0 to {len(self.order) - 1} once, in the order in"
                f" which they fill the nodes; this one is {_shortened(self.order)}"
            )

    def places(self, size: int) -> Places:
        """Where each of ``size`` ranks is.

        Raises:
            RequestError: the order is one of another number of ranks.
        """
        if self.order and len(self.order) != size:
            raise RequestError(
                f"order names {len(self.order)} ranks, and there are {size}; name all of them,"
                " or leave it out to fill the nodes by number"
            )
        # more than it has ranks cannot be used
        links_used = min(self.links, self.ranks_per_node)
        nodes, links = [0] * size, [0] * size
        for place, rank in enumerate(self.order or range(size)):
            node, seat = divmod(place, self.ranks_per_node)
            nodes[rank] = node
            links[rank] = node * links_used + seat % links_used
        return Places(tuple(nodes), tuple(links))

    def network(self, size: int) -> Network:
        """Its network for ``size`` ranks, with nothing in it yet."""
        kind = NodePorts if self.sharing == "fifo" else SharedLinks
        return kind(
            self.places(size),
            inside=(ticks_of(self.alpha_inside), ticks_of(self.beta_inside)),
            between=(ticks_of(self.alpha_between), ticks_of(self.beta_between)),
        )


Cluster = Flat | Nodes


def _require_time(name: str, value: float) -> None:
    if not 0 <= value < 1e9:
        raise RequestError(f"{name} is a time in seconds, at least 0; not {value}")


def _require_count(name: str, value: object) -> None:
    if not isinstance(value, int) or not 1 <= value < 1 << 31:
        raise RequestError(f"{name} is a whole number, at least 1; not {value}")


def _shortened(order: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, order[:8]))
    return f"({shown}, …, {len(order)} in all)" if len(order) > 8 else f"({shown})"
