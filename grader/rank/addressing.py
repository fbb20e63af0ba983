"""Ranks, roots, tags and groups that a call names: whether there are any such.

Torch checks some of them in some calls, each in its own words; some reach the transport,
which then takes the last rank for rank −1, or raises on one rank and leaves the others
waiting.  Here every call is checked in the same way, before anything is posted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch.distributed import distributed_c10d as c10d

__all__ = [
    "LARGEST_TAG",
    "checks",
    "default_group_stays",
    "destroyed_text",
    "require_members",
    "require_peer",
    "require_rank",
    "require_tag",
]

#: Tags are C's ``int`` to gloo, and to MPI.
LARGEST_TAG = 2**31 - 1


def require_rank(rank: Any, size: int) -> None:
    """Make sure that a group of ``size`` ranks has a rank.

    Raises:
        TypeError: it is no whole number.
        ValueError: there is no such rank.
    """
    try:
        number = operator.index(rank)
    except TypeError:
        what = f"{type(rank).__name__} {rank!r}"
        message = f"a rank is a whole number, not the {what}; // divides whole numbers"
        raise TypeError(message) from None
    if not 0 <= number < size:
        raise ValueError(
            f"there is no rank {rank} in a group of {size}; its ranks are 0 to {size - 1}"
        )


def require_peer(peer: Any, own: int, size: int) -> None:
    """Make sure that rank ``own`` of a group can exchange messages with ``peer``.

    Raises:
        TypeError: it is no whole number.
        ValueError: there is no such rank, or it is the rank itself, to which
            gloo has no connection.
    """
    require_rank(peer, size)
    if peer == own:
        raise ValueError(_to_itself(peer))


def _to_itself(rank: int) -> str:
    return f"rank {rank} cannot talk to itself: the peer is the same as the rank that calls"


def require_tag(tag: Any) -> None:
    """Make sure that a message can have a tag.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is negative, or too large.
    """
    try:
        number = operator.index(tag)
    except TypeError:
        message = f"a tag is a whole number, not the {type(tag).__name__} {tag!r}"
        raise TypeError(message) from None
    if not 0 <= number <= LARGEST_TAG:
        raise ValueError(f"there is no tag {tag}; tags are 0 to {LARGEST_TAG}")


def require_members(ranks: Iterable[Any], size: int) -> None:
    """Make sure that a world of ``size`` ranks can make a group of these.

    Raises:
        TypeError: one is no whole number.
        ValueError: one is not there, or there twice, or there are none.
    """
    members = list(ranks)
    if not members:
        raise ValueError("new_group needs at least one rank, and its list is empty")
    for rank in members:
        try:
            require_rank(rank, size)
        except (TypeError, ValueError) as error:
            raise type(error)(f"new_group({members}): {error}") from None
    if len(set(members)) != len(members):
        raise ValueError(f"new_group({members}): a rank can be in a group only once")


def _ranks(members: Sequence[int]) -> str:
    *most, last = map(str, members)
    return f"ranks {', '.join(most)} and {last}" if most else f"rank {last} alone"


def destroyed_text(members: Sequence[int], line: int) -> str:
    """What is said of a call on a group that its rank has destroyed."""
    return (
        f"the group of {_ranks(members)} is no more: this rank has called"
        f" destroy_process_group on it at line {line}"
    )


def default_group_stays(name: str) -> str:
    """What is said of ``init_process_group`` and ``destroy_process_group``."""
    if name == "init_process_group":
        return (
            "init_process_group is not for the exercise to call: the process group is already"
            " set up when your function starts; leave the call out"
        )
    return (
        f"{name}() is not for the exercise to call: it would end the default group, which is"
        " used again after your function; leave the call out, or name a group of your own,"
        f" as in {name}(group)"
    )


def checks(outside: Callable[[str], None]) -> dict[str, Callable[..., Any]]:
    """Checks of ``torch.distributed.distributed_c10d``, by name, in our words.

    Args:
        outside: told the name of a function that a rank calls on a group it is not in.
    """
    canonicalize = c10d._canonicalize_group_rank
    nobody = c10d.GroupMember.NON_GROUP_MEMBER

    def _canonicalize_group_rank(
        group: Any,
        global_rank: Any = None,
        group_rank: Any = None,
        return_global: bool = False,
    ) -> Any:
        if group == nobody:
            return -1  # torch warns of that, and does nothing
        rank = global_rank if group_rank is None else group_rank
        if rank is None or (global_rank is not None and group_rank is not None):
            return canonicalize(group, global_rank, group_rank, return_global)
        whole = group is c10d.GroupMember.WORLD
        if whole or group_rank is not None:
            require_rank(rank, group.size())
        if whole:
            return rank
        places = c10d._world.pg_group_ranks.get(group)
        if places is None:
            return canonicalize(group, global_rank, group_rank, return_global)
        if group_rank is None and global_rank not in places:
            raise ValueError(f"rank {global_rank} is not in this group of {_ranks(list(places))}")
        return canonicalize(group, global_rank, group_rank, return_global)

    def _check_not_self_rank(group: Any, rank: int, _: str) -> None:
        if group != nobody and group.rank() == rank:
            raise ValueError(_to_itself(c10d.get_global_rank(group, rank)))

    return {
        "_canonicalize_group_rank": _canonicalize_group_rank,
        "_check_not_self_rank": _check_not_self_rank,
        "_warn_not_in_group": outside,
    }
