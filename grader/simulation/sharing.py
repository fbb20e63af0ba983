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

import heapq
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
    shares: list[Fraction | None] = [None] * len(paths)
    users: dict[L, list[int]] = {}
    for flow, path in enumerate(paths):
        for link in path:
            users.setdefault(link, []).append(flow)
    links = list(users)
    left = {link: Fraction(capacities[link]) for link in links}
    growing = {link: len(flows) for link, flows in users.items()}
    # where the water stands when a link is full; that can only rise, so it is
    # looked at again when a link's turn comes, and not whenever it rises
    levels = [(left[link] / growing[link], place) for place, link in enumerate(links)]
    heapq.heapify(levels)
    while levels:
        level, place = heapq.heappop(levels)
        link = links[place]
        if not growing[link]:
            continue
        risen = left[link] / growing[link]
        if risen > level:
            heapq.heappush(levels, (risen, place))
            continue
        for flow in users[link]:
            if shares[flow] is None:
                shares[flow] = level
                for other in paths[flow]:
                    left[other] -= level
                    growing[other] -= 1
    return [share for share in shares if share is not None]
