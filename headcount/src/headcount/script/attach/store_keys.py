"""What the store of a job says of who has come to the making of each group.

Gloo's ranks leave their addresses there.  The store is only read; a port that does not answer is
found by a plain connection, since torch's own tries for long.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from datetime import timedelta

import psutil

__all__ = ["Arrivals", "arrivals", "ranks_at"]

#: By a group's name, the address at which the rank at each place listens.
Arrivals = dict[str, dict[int, tuple[str, int]]]

#: A rank's address, after the attempt of a launcher that starts jobs anew: the default group has
#: the name ``0``, and all others stand behind it.
_KEY = re.compile(r"(?:.*/attempt_(\d+)/)?default_pg/0//(?:(.+)//)?cpu//\d+/(\d{1,6})")

#: Where the address is in a value, and seconds for the answers.
_FAMILY, _PORT, _HOST, _PATIENCE = 18, 20, 22, 3


def arrivals(host: str, port: int) -> Arrivals:
    """Return who has come to the making of each group.

    Raises:
        OSError: nothing answers there.
        RuntimeError: it is no store.
    """
    socket.create_connection((host, port), _PATIENCE).close()
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    store = TCPStore(
        host, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=_PATIENCE)
    )
    found: dict[int, Arrivals] = {0: {}}
    for key in store.list_keys():
        match = _KEY.fullmatch(key)
        if match is not None and store.check([key]):
            value = store.get(key)
            address = ".".join(map(str, value[_HOST : _HOST + 4]))
            # another family's address is longer, and not needed where its port is known
            listens = address if value[_FAMILY : _FAMILY + 1] == b"\x02" else ""
            number = int.from_bytes(value[_PORT : _PORT + 2], "big")
            places = found.setdefault(int(match[1] or 0), {}).setdefault(match[2] or "0", {})
            places[int(match[3])] = listens, number
    return found[max(found)]


def ranks_at(arrived: Arrivals, ranks: Mapping[int, int]) -> dict[str, dict[int, int | None]]:
    """Return the rank at each place of each group, as far as it runs on this machine.

    Args:
        arrived: by group and place, the addresses.
        ranks: by rank, its process.
    """
    rank_of = {pid: rank for rank, pid in ranks.items()}
    listening: dict[tuple[str, int], int | None] = {}
    for one in psutil.net_connections("tcp"):
        if one.status == psutil.CONN_LISTEN and one.pid in rank_of:
            for host in (one.laddr.ip, ""):
                listening[host, one.laddr.port] = rank_of[one.pid]
    return {
        group: {place: listening.get(address) for place, address in sorted(places.items())}
        for group, places in arrived.items()
    } | {"0": {place: place for place in sorted(arrived.get("0", {}))}}
