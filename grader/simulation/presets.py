"""Clusters by name, with a source for every constant, or from a file.

The bandwidths of hardware are *published peaks*: what a link can carry at most,
and not what a program gets.  The latencies of GPUs are those with which NCCL
estimates its own algorithms.  So these are clusters to think with.  For one that
you have, measure α and β (chapter 13 shows how), and write them into a file.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import msgspec

from grader.core.errors import RequestError
from grader.core.reading import contents
from grader.simulation.clusters import Cluster, Flat, Nodes

__all__ = ["PRESETS", "Preset", "Source", "cluster_from"]


@dataclass(frozen=True)
class Source:
    """Where a constant comes from.

    Attributes:
        kind: ``published`` by who makes it, ``estimated`` or ``measured`` by who
            says so, or ``chosen`` by us.
        says: what is said there, or why it was chosen.
        url: where; empty for what we have measured or chosen.
    """

    kind: Literal["published", "estimated", "measured", "chosen"]
    says: str
    url: str = ""


@dataclass(frozen=True)
class Preset:
    """A cluster that has a name.

    Attributes:
        what: it is, in a few words.
        cluster: its description.
        sources: of every field of it that is not empty, by name.
    """

    what: str
    cluster: Cluster
    sources: Mapping[str, Source]


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

_NVLINK_ALPHA = Source(
    "estimated",
    "hwLatencies, NVLINK, Ring, Simple: 3.4 µs for a step, of whatever generation. Simple is the"
    " protocol that gets the full bandwidth; LL takes 0.6 µs, and gets half of it at most",
    _NCCL,
)
_NET_ALPHA = Source(
    "estimated",
    "hwLatencies, NET, Ring, Simple: 14 µs for a step, over whatever network; LL takes 2.7 µs",
    _NCCL,
)
_OWN_LINK = Source("chosen", "every rank has a link of its own, so there is nothing to share")

#: Medians of five runs, with bare ``torch.distributed``: α was 128 to 178 µs, β 0.34 to 0.62 ns.
_LOOPBACK = "by chapter 13's ping-pong and fit, gloo over loopback, two cores of a virtual machine"
_LOOPBACK_ALPHA = Source(
    "measured", f"{_LOOPBACK}: about 150 µs. It is no law: yours differs, from run to run"
)
_LOOPBACK_BETA = Source("measured", f"{_LOOPBACK}: about 2.5 GB/s. It is no law, either")

#: All that have a name.
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
            "ranks_per_node": Source("published", "accelerators_per_node: 8", _H100),
            "alpha_inside": _NVLINK_ALPHA,
            "beta_inside": Source(
                "published",
                "900 GB/s for each GPU, of both directions together; half of it in one",
                "https://nvidia.com/de-de/technologies/hopper-architecture",
            ),
            "alpha_between": _NET_ALPHA,
            "beta_between": Source("published", "ConnectX-7 IB NDR 400Gb/s: 50 GB/s", _H100),
            "links": Source("published", "Compute: 8x ConnectX-7", _H100),
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
            "ranks_per_node": Source("published", "accelerators_per_node: 8", _A100),
            "alpha_inside": _NVLINK_ALPHA,
            "beta_inside": Source(
                "published",
                "between any two of 8 GPUs 600 GB/s of both directions together; half of it in one",
                "https://devblogs.nvidia.com"
                "/introducing-hgx-a100-most-powerful-accelerated-server-platform-for-ai-hpc/",
            ),
            "alpha_between": _NET_ALPHA,
            "beta_between": Source("published", "ConnectX-6 IB HDR 200Gb/Sec: 25 GB/s", _A100),
            "links": Source("published", "Compute: 8x ConnectX-6", _A100),
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
            "ranks_per_node": Source("chosen", "one for each core of a small computer"),
            "alpha_inside": _LOOPBACK_ALPHA,
            "beta_inside": _LOOPBACK_BETA,
            "alpha_between": Source(
                "estimated",
                "what gloo takes on loopback, and the 20 µs from end to end that were measured with"
                " TCP in 2003",
                "http://www.hoti.org/archive/Hoti11_program/abstracts/24.html",
            ),
            "beta_between": Source(
                "published",
                "10 Gb/s is the rate of the line, 1.25 GB/s; headers take some of it, and those"
                " who measured in 2003 got 4 Gb/s",
                "http://www.hoti.org/archive/Hoti11_program/abstracts/24.html",
            ),
            "links": Source("chosen", "one card for each computer"),
            "sharing": Source(
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
    """The cluster that somebody has named.

    Args:
        text: the name of a preset, or the path of a ``.json`` file.

    Raises:
        RequestError: there is no such preset, or no cluster in that file.
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
        # the names of its fields are anybody's
        fault = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(error))
        raise RequestError(f"{text} describes no cluster: {fault}; {_fields()}") from None
    return cluster


def _fields() -> str:
    """What a file may hold."""
    kinds = [
        f'with "type": "{kind.__struct_config__.tag}" it has '
        + ", ".join(field.name for field in msgspec.structs.fields(kind))
        for kind in get_args(Cluster)
    ]
    return f"one is a JSON object; {', and '.join(kinds)}"
