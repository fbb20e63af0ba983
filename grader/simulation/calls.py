"""What ``torch.distributed`` is for simulated ranks.

The default group is a :class:`~grader.simulation.group.SimulatedGroup`, so
torch's own functions do their work on it, but for the commonest of them
(:mod:`grader.simulation.shortcuts`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import HashStore
from torch.distributed import distributed_c10d as c10d

from grader.core.events import WORLD
from grader.rank.addressing import checks, require_members
from grader.rank.guard import MANAGEMENT, destroy_process_group, not_yours
from grader.simulation.builtin import Builtins
from grader.simulation.group import SimulatedGroup
from grader.simulation.mailboxes import Hub
from grader.simulation.shortcuts import shortcuts

__all__ = ["installed"]

_BACKEND = "simulated"


@contextlib.contextmanager
def installed(hub: Hub, builtins: Builtins | None = None) -> Iterator[None]:
    """While ``torch.distributed`` is that of a hub's ranks; all collectives may be called."""
    builtins = builtins or Builtins()
    group = SimulatedGroup(hub, range(hub.size), WORLD, builtins)
    if not hasattr(dist.Backend, _BACKEND.upper()):
        dist.Backend.register_backend(_BACKEND, _create, extended_api=True, devices=["cpu"])
    _create.group = group  # type: ignore[attr-defined]
    dist.init_process_group(_BACKEND, rank=0, world_size=hub.size, store=HashStore())
    group_of_torch = c10d._get_default_group()
    c10d._world.pg_map[group_of_torch] = (dist.Backend("gloo"), HashStore())
    before = {name: getattr(c10d, name) for name in ("send", "recv", "isend", "irecv")}
    kept = {name: getattr(c10d, name) for name in ("new_group", *MANAGEMENT)}
    named = checks(lambda function: builtins.outside(hub.current.number, function))
    torchs = {name: getattr(c10d, name) for name in named}
    try:
        for name, check in named.items():
            setattr(c10d, name, check)
        if hub.tap is None and hub.eager < 0:
            for name, call in shortcuts(hub, before).items():
                _replace(name, call)
        _replace("new_group", _group_maker(hub, builtins))
        _replace("init_process_group", not_yours("init_process_group"))
        _replace("destroy_process_group", destroy_process_group)
        yield
    finally:
        for name, check in torchs.items():
            setattr(c10d, name, check)
        for name, call in (before | kept).items():
            _replace(name, call)
        dist.destroy_process_group()


def _create(*_: Any) -> SimulatedGroup:
    return _create.group  # type: ignore[attr-defined,no-any-return]


def _replace(name: str, call: Callable[..., Any]) -> None:
    for module in (dist, c10d):
        setattr(module, name, call)


def _group_maker(hub: Hub, builtins: Builtins) -> Callable[..., Any]:
    """``new_group`` for simulated ranks: the k-th call is the same group on all of them."""
    groups: list[SimulatedGroup] = []
    calls = [0] * hub.size

    def new_group(ranks: Any = None, *_: Any, **__: Any) -> Any:
        me = hub.current.number
        members = list(range(hub.size)) if ranks is None else list(ranks)
        require_members(members, hub.size)
        members.sort()
        index, calls[me] = calls[me], calls[me] + 1
        if index == len(groups):
            group = SimulatedGroup(hub, members, f"group {index}", builtins)
            groups.append(group)
            c10d._world.pg_map[group] = (dist.Backend("gloo"), HashStore())
            c10d._world.pg_names[group] = group.getGroupName()  # type: ignore[assignment]
            c10d._world.pg_group_ranks[group] = {m: i for i, m in enumerate(members)}
            c10d._world.pg_backend_config[group] = "cpu:gloo"
        group = groups[index]
        if group._members != members:
            raise RuntimeError(
                f"rank {me} makes a group of ranks {members} where others make one of ranks"
                f" {group._members}; new_group is a collective: every rank has to call it,"
                " with the same ranks"
            )
        if me not in members:
            return dist.GroupMember.NON_GROUP_MEMBER
        if hub.tap is not None:
            hub.tap.grouped(group.getGroupName(), members)
        return group

    return new_group
