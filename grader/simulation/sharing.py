"""Max-min fair shares of links.

Shares are fair in this sense if none can grow without another shrinking that is
no larger.  There is exactly one such choice.  It is found by filling: all grow
alike from zero until some link is full; those who use it stay as they are, the
others grow on (Bertsekas & Gallager, *Data Networks*, 2nd edition, 1992, section
6.5.2).  What long transfers that share bottlenecks get on real networks is near
to it, which is why simulators of networks use it (Casanova et al., *Versatile,
scalable, and accurate simulation of distributed applications and platforms*,
2014, https://doi.org/10.1016/j.jpdc.2014.06.008).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

__all__ = ["fair_shares"]

L = TypeVar("L", bound=Hashable)


def fair_shares(
    paths: Sequence[Sequence[L]], capacities: Mapping[L, int | Fraction]
) -> list[Fraction]:
    """The max-min fair share of each flow, exactly.

    Args:
        paths: for each flow the links that it uses, each once, and at least one.
        capacities: of the links.
    """
    shares = [Fraction(0)] * len(paths)
    growing: dict[L, list[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            growing.setdefault(link, []).append(flow)
    left = {link: Fraction(capacities[link]) for link in growing}
    done = [False] * len(paths)
    while growing:
        # where the water stands when the next link is full
        level = min(left[link] / len(flows) for link, flows in growing.items())
        full = [link for link, flows in growing.items() if left[link] / len(flows) == level]
        for flow in sorted({flow for link in full for flow in growing[link]}):
            shares[flow], done[flow] = level, True
            for link in paths[flow]:
                left[link] -= level
        growing = {
            link: rest
            for link, flows in growing.items()
            if (rest := [flow for flow in flows if not done[flow]])
        }
    return shares
