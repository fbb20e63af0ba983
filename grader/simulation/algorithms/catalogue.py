"""Which algorithms there are for a collective, by name, where they come from, what they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grader.core.errors import RequestError
from grader.simulation.algorithms import (
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = ["ALGORITHMS", "DEFAULTS", "SOURCES", "UNEVEN", "Algorithm", "choose", "table"]

#: What the algorithms are taken from.
SOURCES = {
    "Bruck et al. 1997": "https://doi.org/10.1109/71.642949",
    "Chan et al. 2007": "https://doi.org/10.1002/cpe.1206",
    "Hensgen et al. 1988": "https://doi.org/10.1007/BF01379320",
    "Patarasuk and Yuan 2009": "https://doi.org/10.1016/j.jpdc.2008.09.002",
    "Pješivac-Grbović et al. 2007": "https://doi.org/10.1007/s10586-007-0012-0",
    "Thakur et al. 2005": "https://doi.org/10.1177/1094342005051521",
}

_BRUCK, _CHAN, _HENSGEN, _PATARASUK, _PJESIVAC, _THAKUR = SOURCES
_NAIVE = "—"


@dataclass(frozen=True)
class Algorithm:
    """One way to do a collective.

    Attributes:
        run: does it; what it takes is the same for all algorithms of a collective.
        source: a key of :data:`SOURCES`, or a dash for what needs none.
        time: on a flat network, at powers of two and sizes that divide evenly, as
            text: n ranks, S bytes of the whole tensor, α and β.
    """

    run: Callable[..., Any]
    source: str
    time: str


#: By collective and name.  The first of each is the default: on a flat network the one of the
#: fewest rounds and, of those, of the fewest bytes in a row; for all-reduce and all-to-all the
#: other way round.  Few rounds also make thousands of ranks quick to simulate.
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "broadcast": {
        "binomial_tree": Algorithm(broadcast.binomial_tree, _CHAN, "⌈log₂ n⌉ (α + S β)"),
        "scatter_allgather": Algorithm(
            broadcast.scatter_allgather, _THAKUR, "(log₂ n + n − 1) α + 2 (n − 1)/n S β"
        ),
        "chain": Algorithm(
            broadcast.chain, _PJESIVAC, "(n + m − 2) (α + S/m β), in m segments of 64 KiB"
        ),
        "linear": Algorithm(broadcast.linear, _NAIVE, "(n − 1) (α + S β)"),
    },
    "reduce": {
        "binomial_tree": Algorithm(reduce.binomial_tree, _CHAN, "⌈log₂ n⌉ (α + S β)"),
        "rabenseifner": Algorithm(reduce.rabenseifner, _THAKUR, "2 log₂ n α + 2 (n − 1)/n S β"),
        "linear": Algorithm(reduce.linear, _NAIVE, "(n − 1) (α + S β)"),
    },
    "all_reduce": {
        "rabenseifner": Algorithm(all_reduce.rabenseifner, _THAKUR, "2 log₂ n α + 2 (n − 1)/n S β"),
        "ring": Algorithm(all_reduce.ring, _PATARASUK, "2 (n − 1) (α + S/n β)"),
        "recursive_doubling": Algorithm(all_reduce.recursive_doubling, _THAKUR, "log₂ n (α + S β)"),
        "reduce_broadcast": Algorithm(all_reduce.reduce_broadcast, _CHAN, "2 ⌈log₂ n⌉ (α + S β)"),
        "linear": Algorithm(all_reduce.linear, _NAIVE, "2 (n − 1) (α + S β)"),
    },
    "all_gather": {
        "bruck": Algorithm(all_gather.bruck, _BRUCK, "⌈log₂ n⌉ α + (n − 1)/n S β"),
        "ring": Algorithm(all_gather.ring, _CHAN, "(n − 1) (α + S/n β)"),
        "recursive_doubling": Algorithm(
            all_gather.recursive_doubling, _THAKUR, "log₂ n α + (n − 1)/n S β"
        ),
    },
    "reduce_scatter": {
        "recursive_halving": Algorithm(
            reduce_scatter.recursive_halving, _THAKUR, "log₂ n α + (n − 1)/n S β"
        ),
        "ring": Algorithm(reduce_scatter.ring, _CHAN, "(n − 1) (α + S/n β)"),
        "pairwise": Algorithm(reduce_scatter.pairwise, _THAKUR, "(n − 1) (α + S/n β)"),
    },
    "scatter": {
        "binomial_tree": Algorithm(scatter.binomial_tree, _CHAN, "log₂ n α + (n − 1)/n S β"),
        "linear": Algorithm(scatter.linear, _NAIVE, "(n − 1) (α + S/n β)"),
    },
    "gather": {
        "binomial_tree": Algorithm(gather.binomial_tree, _CHAN, "log₂ n α + (n − 1)/n S β"),
        "linear": Algorithm(gather.linear, _NAIVE, "(n − 1) (α + S/n β)"),
    },
    "all_to_all": {
        "pairwise": Algorithm(all_to_all.pairwise, _THAKUR, "(n − 1) (α + S/n β)"),
        "bruck": Algorithm(all_to_all.bruck, _BRUCK, "log₂ n (α + S/2 β)"),
        "linear": Algorithm(all_to_all.linear, _NAIVE, "at least (n − 1) (α + S/n β)"),
    },
    "barrier": {
        "dissemination": Algorithm(barrier.dissemination, _HENSGEN, "⌈log₂ n⌉ α"),
        "linear": Algorithm(barrier.linear, _NAIVE, "2 (n − 1) α"),
    },
}

#: The algorithm of each collective, unless another is asked for.
DEFAULTS = {collective: next(iter(known)) for collective, known in ALGORITHMS.items()}

#: What takes the place of an all-to-all that cannot do blocks of several sizes.
UNEVEN = {"bruck": "pairwise"}


def choose(wanted: Mapping[str, str]) -> dict[str, str]:
    """The algorithm of every collective: those that are wanted, and the defaults.

    Raises:
        RequestError: there is no such collective, or it has no such algorithm.
    """
    for collective, name in wanted.items():
        if collective not in ALGORITHMS:
            raise RequestError(
                f"there is no collective {collective!r} to choose an algorithm for;"
                f" there are {_listed(ALGORITHMS)}"
            )
        if name not in ALGORITHMS[collective]:
            raise RequestError(
                f"{collective} has no algorithm {name!r}; it has {_listed(ALGORITHMS[collective])}"
            )
    return {**DEFAULTS, **wanted}


def table() -> str:
    """All algorithms as a table in Markdown, the default of each collective in bold."""
    rows = ["| collective | algorithm | time | source |", "|---|---|---|---|"]
    for collective, known in ALGORITHMS.items():
        for name, algorithm in known.items():
            shown = f"**`{name}`**" if name == DEFAULTS[collective] else f"`{name}`"
            link = SOURCES.get(algorithm.source)
            source = f"[{algorithm.source}]({link})" if link else algorithm.source
            rows.append(f"| `{collective}` | {shown} | {algorithm.time} | {source} |")
    return "\n".join(rows)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
