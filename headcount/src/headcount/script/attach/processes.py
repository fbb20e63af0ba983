"""The ranks of a job, found from any of its processes."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import psutil

from headcount.core.errors import RequestError
from headcount.script.attach.kernel import network_of, why_denied
from headcount.script.attach.stacks import NoStack, stack_of, value_of

__all__ = ["LiveJob", "find_job"]


@dataclass
class LiveJob:
    """A job of which some ranks run on this machine.

    Attributes:
        name: what all of its ranks have in common, in words.
        ranks: the process of each rank that is here.
        world: the number of ranks, as far as it is known.
        store: the host and the port of its store, if they are known.
        started: how many of its ranks have been started here.
        notes: what is odd about it, one sentence each.
    """

    name: str
    ranks: dict[int, psutil.Process]
    world: int
    store: tuple[str, int] | None
    started: int
    notes: list[str] = field(default_factory=list)


#: What the ranks of one job have in common in their environments.
_COMMON = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")


def find_job(pids: Sequence[int], arrived: Mapping[int, tuple[str, int]] | None = None) -> LiveJob:
    """Find the job that processes belong to: its ranks, their launcher, or their workers.

    Args:
        pids: the processes.
        arrived: the address at which each rank listens, as the job's store has it, for ranks that
            have no RANK in their environment.

    Raises:
        RequestError: there is no such process, no rank, or there are several jobs.
    """
    for pid in pids:
        if not psutil.pid_exists(pid):
            raise RequestError(f"there is no process {pid}")
    table = {one.pid: one.info for one in psutil.process_iter(["ppid", "environ"])}
    below: defaultdict[int, list[int]] = defaultdict(list)
    for pid, one in table.items():
        below[one["ppid"]].append(pid)
    trees = {pid: _tree(pid, below) for pid in pids}
    if arrived is not None:
        return _by_address(arrived, [one for tree in trees.values() for one in tree])
    ranks = {pid: _number(one["environ"], "RANK", -1) for pid, one in table.items()}
    keys = {pid: _key(pid, table[pid]["environ"]) for pid, rank in ranks.items() if rank >= 0}
    # a process that has a rank itself is asked for, whatever it has started
    asked = [one for pid, tree in trees.items() for one in ([pid] if pid in keys else tree)]
    found = {keys[one] for one in asked if one in keys}
    if not found:
        for one in map(psutil.Process, filter(psutil.pid_exists, asked)):
            if table[one.pid]["environ"] is None and one.status() != psutil.STATUS_ZOMBIE:
                raise RequestError(f"process {one.pid} cannot be read: {why_denied(one)}")
        return _by_spawn(pids[0], trees[pids[0]])
    if len(found) > 1:
        raise RequestError(
            f"{len(found)} jobs are at {', '.join(map(str, pids))} or below: give a rank of one"
        )
    (key,) = found
    claims: defaultdict[int, list[int]] = defaultdict(list)
    for pid in [pid for pid, one in keys.items() if one == key]:
        # what a rank has started has its environment as well
        if ranks.get(table[pid]["ppid"]) != ranks[pid]:
            claims[ranks[pid]].append(pid)
    job = LiveJob(" ".join(filter(None, key[:-1])), {}, 0, None, 0)
    for rank, claim in sorted(claims.items()):
        pid = next((one for one in claim if one in pids), max(claim))
        job.ranks[rank] = psutil.Process(_python_of(_tree(pid, below)))
        if len(claim) > 1:
            others = ", ".join(str(one) for one in claim if one != pid)
            job.notes.append(f"process {pid} is taken for rank {rank}, which {others} has as well")
    environments = [table[pid]["environ"] for claim in claims.values() for pid in claim]
    world = max(_number(one, "WORLD_SIZE", 0) for one in environments)
    job.world = max(world, max(job.ranks) + 1)
    here = max(_number(one, "LOCAL_WORLD_SIZE", 0) for one in environments)
    is_local = key[0] in ("localhost", "127.0.0.1", "::1")
    job.started = job.world if is_local else max(here, len(job.ranks))
    port = _number({"port": key[1] or ""}, "port", 0)
    job.store = (key[0], port) if key[0] and port else None
    return job


def _tree(pid: int, below: Mapping[int, Sequence[int]]) -> list[int]:
    """Return a process and all that it has started, itself first."""
    found = [pid]
    for one in found:
        found += below.get(one, ())
    return found


def _number(environment: Mapping[str, str] | None, name: str, default: int) -> int:
    text = (environment or {}).get(name, "")
    return int(text) if text.isdecimal() and len(text) < 7 else default


def _key(pid: int, environment: Mapping[str, str]) -> tuple[str | None, ...]:
    """Return what the ranks of a job have in common, the network that their ports are of last."""
    return *map(environment.get, _COMMON), network_of(pid)


def _python_of(tree: Sequence[int]) -> int:
    """Return the process that runs Python: the one that has the rank may be a shell."""
    for one in tree:
        with contextlib.suppress(psutil.Error):
            if "python" in os.path.basename(psutil.Process(one).exe()):
                return one
    return tree[0]


def _by_address(arrived: Mapping[int, tuple[str, int]], pids: Sequence[int]) -> LiveJob:
    """Return the job whose ranks listen where its store says.

    Raises:
        RequestError: none of the processes listens there.
    """
    listening = {
        one.laddr: one.pid for one in psutil.net_connections("tcp") if one.status == "LISTEN"
    }
    found = {rank: listening.get(address) for rank, address in sorted(arrived.items())}
    ranks = {rank: psutil.Process(pid) for rank, pid in found.items() if pid in {*pids}}
    if not ranks:
        raise RequestError("none of these processes listens where the store's ranks do")
    return LiveJob("by its store", ranks, max(arrived) + 1, None, len(ranks))


def _by_spawn(pid: int, tree: Sequence[int]) -> LiveJob:
    """Return the job of ``mp.spawn``, which tells its processes their numbers as an argument.

    Raises:
        RequestError: there is none.
    """
    ranks, why = {}, ""
    for one in tree:
        try:
            number = value_of(stack_of(one), "_wrap", "i")
        except NoStack as error:
            why = f" ({error})"
            continue
        if isinstance(number, int):
            ranks[number] = psutil.Process(one)
    if not ranks:
        raise RequestError(
            f"no rank is at process {pid} or below it: no environment there has RANK, and no stack"
            f" is of mp.spawn{why}; --store HOST:PORT may tell ranks that were started otherwise"
        )
    first = ranks[min(ranks)].environ()
    host, port = first.get("MASTER_ADDR"), _number(first, "MASTER_PORT", 0)
    store = (host, port) if host and port else None
    world = max(ranks) + 1
    job = LiveJob(f"mp.spawn in process {pid}", dict(sorted(ranks.items())), world, store, world)
    if store is None:
        job.notes.append(
            "the job's store was not asked who is in each group: no environment names it; give it"
            " as --store HOST:PORT if it has an address"
        )
    return job
