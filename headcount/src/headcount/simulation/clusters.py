"""Descriptions of clusters: what a message between two of their ranks costs.

Times are in seconds, sizes in bytes: a message of S bytes takes α + S·β (Hockney, *The
communication challenge for MPP: Intel Paragon and Meiko CS-2*, 1994), and 1/β is a bandwidth in
bytes per second *in one direction*.  A description is plain data, so that it can be sent to the
process that simulates, and kept in a file.  :data:`PRESETS` has some by name.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import msgspec

from headcount.core.errors import RequestError
from headcount.core.files import contents
from headcount.simulation.network import Network, NodePorts, Places, Ports, SharedLinks, ticks_of
from headcount.trace.trace import ALPHA, BETA

__all__ = ["Cluster", "Flat", "Nodes", "PRESETS", "Preset", "Sharing", "Citation", "cluster_from"]


#: How several messages use one link: one after the other, or at once with fair shares.
Sharing = Literal["fifo", "max-min"]


class Flat(msgspec.Struct, tag="flat", frozen=True, forbid_unknown_fields=True):
    """A cluster in which all pairs of ranks have the same connection.

    Attributes:
        alpha: seconds that a message of no bytes takes.
        beta: seconds that each byte adds.
    """

    alpha: float = ALPHA
    beta: float = BETA

    def __post_init__(self) -> None:
        _require_time("alpha", self.alpha)
        _require_time("beta", self.beta)

    def network(self, size: int) -> Network:
        """Return an empty network of this kind for ``size`` ranks."""
        return Ports(size, ticks_of(self.alpha), ticks_of(self.beta))


class Nodes(msgspec.Struct, tag="nodes", frozen=True, forbid_unknown_fields=True):
    """A cluster of two levels: nodes that hold ranks, and links between the nodes.

    Every rank has one port to send and one to receive.  Every node has ``links`` links to a
    network of unlimited bandwidth, each with its full bandwidth in both directions at once; the
    ranks of a node are assigned to its links in turn.

    Attributes:
        ranks_per_node: number of ranks on a node; the last node may hold fewer.
        alpha_inside: seconds that a message of no bytes takes inside a node.
        beta_inside: seconds that each byte adds there.
        alpha_between: seconds that a message of no bytes takes between nodes.
        beta_between: seconds that each byte adds there, for a message alone on its links.
        links: number of links of a node, such as its network cards.
        sharing: ``fifo`` if a link carries one message at a time, or ``max-min`` if it carries
            all at once, each with its fair share.
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
        # decoding a frame or a file checks the value; the constructor does not
        if self.sharing not in ("fifo", "max-min"):
            raise RequestError(f"sharing is 'fifo' or 'max-min', not {self.sharing!r}")
        if sorted(self.order) != list(range(len(self.order))):
            raise RequestError(
                f"order names each rank from 0 to {len(self.order) - 1} once, in the order in"
                f" which they fill the nodes; this one is {_shortened(self.order)}"
            )

    def places(self, size: int) -> Places:
        """Return the node and the link of each of ``size`` ranks.

        Raises:
            RequestError: ``order`` names another number of ranks.
        """
        if self.order and len(self.order) != size:
            raise RequestError(
                f"order names {len(self.order)} ranks, and there are {size}; name all of them,"
                " or leave it out to fill the nodes by number"
            )
        # a node cannot use more links than it has ranks
        links_used = min(self.links, self.ranks_per_node)
        nodes, links = [0] * size, [0] * size
        for place, rank in enumerate(self.order or range(size)):
            node, seat = divmod(place, self.ranks_per_node)
            nodes[rank] = node
            links[rank] = node * links_used + seat % links_used
        return Places(tuple(nodes), tuple(links))

    def network(self, size: int) -> Network:
        """Return an empty network of this kind for ``size`` ranks."""
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


# Clusters by name, with a source for every constant, or from a file. --------------
#
# The bandwidths of hardware are *published peaks*: the most a link can carry, and not what a
# program gets.  The latencies of GPUs are those with which NCCL estimates its own algorithms.
# So these clusters are for thinking with.  For a real one, measure α and β (chapter 13 shows
# how) and write them into a file.


@dataclass(frozen=True)
class Citation:
    """The source of a constant.

    Attributes:
        kind: ``published`` by the manufacturer, ``estimated`` or ``measured`` by the source, or
            ``chosen`` by us.
        says: what the source says, or why the value was chosen.
        url: address of the source; empty for values that we measured or chose.
    """

    kind: Literal["published", "estimated", "measured", "chosen"]
    says: str
    url: str = ""


@dataclass(frozen=True)
class Preset:
    """A named cluster.

    Attributes:
        what: what the cluster is, in a few words.
        cluster: its description.
        sources: the source of every field that is not empty, by name.
    """

    what: str
    cluster: Cluster
    sources: Mapping[str, Citation]


_NCCL = (
    "https://github.com/NVIDIA/nccl/blob/5067397c2676d5aed50042fc39e5c8ee96eb0027"
    "/src/graph/tuning.cc"
)
_MLPERF = "https://github.com/mlcommons/training_results_"
_H100 = (
    f"{_MLPERF}v3.0/blob/9f08e30cbe2fed7cd12bea174729b3904124c7bc/NVIDIA/systems"
    "/dgxh100_n8_ngc23.04_pytorch.json"
)
_A100 = (
    f"{_MLPERF}v1.1/blob/f6f044353a3e73cb7c76e971ef3df2b8badd6283/NVIDIA/systems"
    "/dgxa100_n8_ngc21.09_pytorch.json"
)

_NVLINK_ALPHA = Citation(
    "estimated",
    "hwLatencies, NVLINK, Ring, Simple: 3.4 µs for a step, of whatever generation. Simple is the"
    " protocol that gets the full bandwidth; LL takes 0.6 µs, and gets half of it at most",
    _NCCL,
)
_NET_ALPHA = Citation(
    "estimated",
    "hwLatencies, NET, Ring, Simple: 14 µs for a step, over whatever network; LL takes 2.7 µs",
    _NCCL,
)
_OWN_LINK = Citation("chosen", "every rank has a link of its own, so there is nothing to share")

#: Medians of five runs, with bare ``torch.distributed``: α was 128 to 178 µs, β 0.34 to 0.62 ns.
_LOOPBACK = "by chapter 13's ping-pong and fit, gloo over loopback, two cores of a virtual machine"
_LOOPBACK_ALPHA = Citation(
    "measured", f"{_LOOPBACK}: about 150 µs. It is no law: yours differs, from run to run"
)
_LOOPBACK_BETA = Citation("measured", f"{_LOOPBACK}: about 2.5 GB/s. It is no law, either")

#: The named clusters.
PRESETS: Mapping[str, Preset] = {
    "dgx-h100": Preset(
        "DGX H100: 8 GPUs on NVLink 4, 8 InfiniBand cards of 400 Gb/s",
        Nodes(
            ranks_per_node=8,
            alpha_inside=3.4e-6,
            beta_inside=1 / 450e9,
            alpha_between=14e-6,
            beta_between=1 / 50e9,
            links=8,
        ),
        {
            "ranks_per_node": Citation("published", "accelerators_per_node: 8", _H100),
            "alpha_inside": _NVLINK_ALPHA,
            "beta_inside": Citation(
                "published",
                "900 GB/s for each GPU, of both directions together; half of it in one",
                "https://nvidia.com/de-de/technologies/hopper-architecture",
            ),
            "alpha_between": _NET_ALPHA,
            "beta_between": Citation("published", "ConnectX-7 IB NDR 400Gb/s: 50 GB/s", _H100),
            "links": Citation("published", "Compute: 8x ConnectX-7", _H100),
            "sharing": _OWN_LINK,
        },
    ),
    "dgx-a100": Preset(
        "DGX A100: 8 GPUs on NVLink 3, 8 InfiniBand cards of 200 Gb/s",
        Nodes(
            ranks_per_node=8,
            alpha_inside=3.4e-6,
            beta_inside=1 / 300e9,
            alpha_between=14e-6,
            beta_between=1 / 25e9,
            links=8,
        ),
        {
            "ranks_per_node": Citation("published", "accelerators_per_node: 8", _A100),
            "alpha_inside": _NVLINK_ALPHA,
            "beta_inside": Citation(
                "published",
                "between any two of 8 GPUs 600 GB/s of both directions together; half of it in one",
                "https://devblogs.nvidia.com"
                "/introducing-hgx-a100-most-powerful-accelerated-server-platform-for-ai-hpc/",
            ),
            "alpha_between": _NET_ALPHA,
            "beta_between": Citation("published", "ConnectX-6 IB HDR 200Gb/Sec: 25 GB/s", _A100),
            "links": Citation("published", "Compute: 8x ConnectX-6", _A100),
            "sharing": _OWN_LINK,
        },
    ),
    "ethernet-10g": Preset(
        "computers of 4 ranks, with one 10 Gb/s Ethernet card each",
        Nodes(
            ranks_per_node=4,
            alpha_inside=150e-6,
            beta_inside=0.4e-9,
            alpha_between=170e-6,
            beta_between=1 / 1.25e9,
            links=1,
            sharing="max-min",
        ),
        {
            "ranks_per_node": Citation("chosen", "one for each core of a small computer"),
            "alpha_inside": _LOOPBACK_ALPHA,
            "beta_inside": _LOOPBACK_BETA,
            "alpha_between": Citation(
                "estimated",
                "what gloo takes on loopback, and the 20 µs from end to end that were measured with"
                " TCP in 2003",
                "http://www.hoti.org/archive/Hoti11_program/abstracts/24.html",
            ),
            "beta_between": Citation(
                "published",
                "10 Gb/s is the rate of the line, 1.25 GB/s; headers take some of it, and those"
                " who measured in 2003 got 4 Gb/s",
                "http://www.hoti.org/archive/Hoti11_program/abstracts/24.html",
            ),
            "links": Citation("chosen", "one card for each computer"),
            "sharing": Citation(
                "chosen", "what several TCP connections get is nearer to a fair share"
            ),
        },
    ),
    "loopback": Preset(
        "one computer: gloo over its loopback, with as many cores as ranks",
        Flat(alpha=150e-6, beta=0.4e-9),
        {"alpha": _LOOPBACK_ALPHA, "beta": _LOOPBACK_BETA},
    ),
}


def cluster_from(text: str) -> Cluster:
    """Return the cluster of a preset or a file.

    Args:
        text: the name of a preset, or the path of a ``.json`` file.

    Raises:
        RequestError: there is no such preset, or the file describes no cluster.
    """
    if text in PRESETS:
        return PRESETS[text].cluster
    if not text.lower().endswith(".json"):
        near = difflib.get_close_matches(text, PRESETS, n=1)
        mend = f"did you mean {near[0]}?" if near else f"there are {', '.join(PRESETS)}"
        raise RequestError(
            f"there is no cluster named {text!r}; {mend}, or name a .json file that describes one"
        )
    data = contents(Path(text), ".json")
    try:
        cluster: Cluster = msgspec.json.decode(data, type=Cluster)
    except (msgspec.DecodeError, RequestError) as error:
        # field names in the file may hold characters that do not print
        fault = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(error))
        raise RequestError(f"{text} describes no cluster: {fault}; {_fields()}") from None
    return cluster


def _fields() -> str:
    """Return a sentence on what a file may hold."""
    kinds = [
        f'with "type": "{kind.__struct_config__.tag}" it has '
        + ", ".join(field.name for field in msgspec.structs.fields(kind))
        for kind in get_args(Cluster)
    ]
    return f"one is a JSON object; {', and '.join(kinds)}"
