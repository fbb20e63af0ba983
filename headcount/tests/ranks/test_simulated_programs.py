"""The same random programs on real and on simulated ranks: the same values, or the same fault.

A program is data: for each rank a list of steps, which one function interprets
in plain ``torch.distributed``.  ``HEADCOUNT_PROGRAMS`` says how many are drawn; with
more than the usual number they are new ones every time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.distributed as dist
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from headcount.core.packing import live_program
from headcount.core.verdict import Diagnosis, Failure
from headcount.launch.launchers import default_launcher
from headcount.launch.process_world import ProcessWorld
from headcount.launch.world import Job
from headcount.simulation.clusters import Flat
from headcount.simulation.launch import simulate
from headcount.trace.wildcard_schedules import WildcardPolicy

pytestmark = pytest.mark.exhaustive

#: Programs of an ordinary run, the same every time.
FEW = 100

MANY = int(os.environ.get("HEADCOUNT_PROGRAMS", FEW))

#: Messages whose ends are not of one size and type.
MISFITS = (Diagnosis.SIZE_MISMATCH, Diagnosis.DTYPE_MISMATCH)

DTYPES = (torch.float32, torch.int64)

#: A step is its kind and up to four numbers.
Step = tuple[Any, ...]


def interpret(groups, steps, tensors):
    """Do the steps of one rank; where messages came from, and a sum of all that came."""
    made = [dist.new_group(members) for members in groups]
    sources, requests, came = [], {}, 0

    def take(slot):
        # what is sent depends on all that has come before
        return came + int(tensors[slot].sum())

    for kind, slot, peer, tag, group in steps:
        where = made[group] if group >= 0 else None
        if kind == "send":
            tensors[slot].add_(came % 13)
            dist.send(tensors[slot], peer, group=where, tag=tag)
        elif kind == "isend":
            tensors[slot].add_(came % 13)
            requests[slot] = dist.isend(tensors[slot], peer, group=where, tag=tag)
        elif kind == "recv":
            sources.append(dist.recv(tensors[slot], peer, group=where, tag=tag))
            came = take(slot)
        elif kind == "irecv":
            requests[slot] = dist.irecv(tensors[slot], peer, group=where, tag=tag)
        elif kind == "swap":
            # the slot after is the one that is received into
            operations = [
                dist.P2POp(dist.isend, tensors[slot], peer, where, tag),
                dist.P2POp(dist.irecv, tensors[slot + 1], peer, where, tag),
            ]
            for request in dist.batch_isend_irecv(operations):
                request.wait()
            came = take(slot + 1)
        elif kind == "wait":
            request = requests.pop(slot)
            request.wait()
            if peer:
                came = take(slot)
        elif kind == "ask":
            while not requests[slot].is_completed():
                pass
        elif kind == "raise":
            raise ValueError(f"step {slot}")
    return [sources, came]


@dataclass(frozen=True)
class Program:
    """What each rank does, and with which tensors: their size, dtype and value."""

    groups: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[Step, ...], ...]
    slots: tuple[tuple[tuple[int, int, int], ...], ...]

    @property
    def size(self) -> int:
        return len(self.steps)

    @property
    def wildcards(self) -> bool:
        return any(
            step[0] in ("recv", "irecv") and step[2] is None
            for steps in self.steps
            for step in steps
        )

    @property
    def asks(self) -> bool:
        return any(step[0] == "ask" for steps in self.steps for step in steps)

    def arguments(self) -> tuple[tuple[Any, ...], ...]:
        return tuple(
            (
                [list(group) for group in self.groups],
                [list(step) for step in steps],
                [torch.full((size,), value, dtype=DTYPES[dtype]) for size, dtype, value in slots],
            )
            for steps, slots in zip(self.steps, self.slots, strict=True)
        )


class _Writer:
    """Writes the steps of all ranks, message by message, so that none can wait for ever."""

    def __init__(self, draw: Callable[..., Any], size: int) -> None:
        self.draw = draw
        self.steps: list[list[Step]] = [[] for _ in range(size)]
        self.slots: list[list[tuple[int, int, int]]] = [[] for _ in range(size)]
        self.open: list[tuple[int, int, bool]] = []

    def slot(self, rank: int, size: int, dtype: int, value: int) -> int:
        self.slots[rank].append((size, dtype, value))
        return len(self.slots[rank]) - 1

    def end(self, rank: int, kind: str, slot: int, peer: int | None, tag: int, group: int) -> None:
        self.steps[rank].append((kind, slot, peer, tag, group))
        if kind.startswith("i"):
            self.open.append((rank, slot, kind == "irecv"))

    def wait(self, which: int) -> None:
        rank, slot, receives = self.open.pop(which)
        if self.draw(st.integers(0, 5)) == 0:
            self.steps[rank].append(("ask", slot, 0, 0, -1))
        self.steps[rank].append(("wait", slot, int(receives), 0, -1))


@st.composite
def programs(draw: Callable[..., Any]) -> Program:
    """Programs that are right, and then, often, spoilt in one place or two."""
    n = draw(st.integers(2, 4))
    members = st.sets(st.integers(0, n - 1), min_size=2).map(lambda s: tuple(sorted(s)))
    groups = draw(st.lists(members, max_size=2)) if draw(st.integers(0, 3)) == 0 else []
    # a receive from anybody gets what luck gives it; so nothing is computed from it,
    # and all that it could get is of one size
    anybody = draw(st.integers(0, 5)) == 0
    writer = _Writer(draw, n)
    for number in range(draw(st.integers(1, 9))):
        group = draw(st.integers(-1, len(groups) - 1))
        inside = groups[group] if group >= 0 else tuple(range(n))
        source, destination = draw(st.permutations(inside))[:2]
        tag = draw(st.sampled_from([0, 0, 0, 1, 7]))
        size, dtype = (2, 0) if anybody else (draw(st.integers(0, 5)), draw(st.integers(0, 1)))
        mine = writer.slot(source, size, dtype, number + 1)
        if not anybody and draw(st.integers(0, 5)) == 0:
            # both send and receive at once
            writer.slot(source, size, dtype, -1)
            theirs = writer.slot(destination, size, dtype, number + 20)
            writer.slot(destination, size, dtype, -1)
            writer.steps[source].append(("swap", mine, destination, tag, group))
            writer.steps[destination].append(("swap", theirs, source, tag, group))
            continue
        theirs = writer.slot(destination, size, dtype, -1)
        kinds = draw(
            st.tuples(st.sampled_from(["send", "isend"]), st.sampled_from(["recv", "irecv"]))
        )
        sender = None if anybody and draw(st.booleans()) else source
        ends = [
            (source, kinds[0], mine, destination, tag, group),
            (destination, kinds[1], theirs, sender, tag, group),
        ]
        for end in draw(st.permutations(ends)):
            writer.end(*end)
        while writer.open and draw(st.integers(0, 2)) == 0:
            writer.wait(draw(st.integers(0, len(writer.open) - 1)))
    while writer.open:
        writer.wait(draw(st.integers(0, len(writer.open) - 1)))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        _spoil(draw, writer)
    return Program(
        tuple(groups),
        tuple(tuple(_without_loose_waits(steps)) for steps in writer.steps),
        tuple(map(tuple, writer.slots)),
    )


def _spoil(draw: Callable[..., Any], writer: _Writer) -> None:
    """Do to a program what people do."""
    rank = draw(st.sampled_from([rank for rank, steps in enumerate(writer.steps) if steps] or [0]))
    steps, slots = writer.steps[rank], writer.slots[rank]
    if not steps:
        return
    place = draw(st.integers(0, len(steps) - 1))
    kind, slot, peer, tag, group = steps[place]
    how = draw(st.sampled_from(["drop", "swap", "size", "dtype", "raise", "tag", "peer"]))
    if how == "drop":
        del steps[place]
    elif how == "swap":
        other = draw(st.integers(0, len(steps) - 1))
        steps[place], steps[other] = steps[other], steps[place]
    elif how == "raise":
        steps.insert(place, ("raise", place, 0, 0, -1))
    elif how == "size":
        size, dtype, value = slots[slot] if kind != "raise" else slots[0]
        slots[slot % len(slots)] = (draw(st.integers(0, 5)), dtype, value)
    elif how == "dtype":
        size, dtype, value = slots[slot % len(slots)]
        slots[slot % len(slots)] = (size, 1 - dtype, value)
    elif how == "tag" and kind not in ("wait", "ask", "raise"):
        steps[place] = (kind, slot, peer, 3, group)
    elif how == "peer" and kind in ("send", "isend", "recv", "irecv") and group < 0:
        # itself, or nobody, among others
        steps[place] = (kind, slot, draw(st.integers(0, len(writer.steps))), tag, group)


def _without_loose_waits(steps: list[Step]) -> list[Step]:
    """Without waits for what is not posted before."""
    posted: set[int] = set()
    found = []
    for step in steps:
        if step[0] in ("isend", "irecv"):
            posted.add(step[1])
        if step[0] not in ("wait", "ask") or step[1] in posted:
            found.append(step)
            if step[0] == "wait":
                posted.discard(step[1])
    return found


def listed(value: Any) -> Any:
    """Tensors as lists with their dtype, to compare and to show."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    return [listed(one) for one in value] if isinstance(value, (list, tuple)) else value


def told(results: Any, failure: Failure | None, luck: bool) -> Any:
    """What can be compared of a run: values and arguments, or the failure in all its parts."""
    if failure is not None and failure.diagnosis not in (
        Diagnosis.UNMATCHED_MESSAGE,
        Diagnosis.UNWAITED_REQUEST,
    ):
        waits = [(wait.rank, wait.peers, wait.text) for wait in failure.waits]
        return (
            failure.diagnosis, failure.rank, failure.message, failure.site,
            failure.cycle, failure.ended, waits,
        )  # fmt: skip
    found = [[listed(result.value), listed(result.arguments[2])] for result in results]
    if luck:
        # which message a receive has got is not told, but that each was got once
        found = [
            [sorted(sources), came, sorted(map(repr, tensors))]
            for (sources, came), tensors in found
        ]
    if failure is None:
        return found, None
    # what nobody has waited for lies in its buffer here already, and there not yet
    return [one[0] for one in found], (failure.diagnosis, failure.rank, failure.message)


class _Worlds:
    """Real worlds of each size, kept while they are usable."""

    def __init__(self) -> None:
        self.launcher = default_launcher()
        self.program = live_program(interpret)
        self.worlds: dict[int, ProcessWorld] = {}

    def real(self, program: Program, lowest: bool = False, seconds: float = 20.0) -> Any:
        world = self.worlds.get(program.size)
        if world is None or not world.usable:
            world = ProcessWorld(self.launcher, program.size, self.program)
            self.worlds[program.size] = world
        policy = WildcardPolicy(lowest=lowest)
        job = Job("interpret", program.arguments(), policy=policy, seconds=seconds)
        outcome = world.run(job)
        return told(outcome.results, outcome.failure, program.wildcards)

    def simulated(self, program: Program, **how: Any) -> Any:
        job = Job("interpret", program.arguments(), seconds=20.0)
        outcome = simulate(self.launcher, self.program, job, Flat(), **how)
        return told(outcome.results, outcome.failure, program.wildcards)

    def close(self) -> None:
        for world in self.worlds.values():
            world.close()
        self.launcher.settle()


@pytest.mark.slow
def test_simulated_ranks_do_what_real_ones_do():
    worlds = _Worlds()

    @settings(
        max_examples=MANY,
        derandomize=MANY == FEW,
        database=None,
        # the programs are short, and each step of shrinking may take a real world its time
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def same(program):
        simulated = worlds.simulated(program)
        if program.wildcards and program.asks:
            # asking changes who is lucky
            event("depends on luck")
            return
        if simulated[0] is Diagnosis.DEADLOCK and program.asks:
            # whoever asks for ever is known to, here; a real world takes its time
            event("asks for ever")
            found = worlds.real(program, seconds=1.0)[0]
            assert found in (Diagnosis.DEADLOCK, Diagnosis.TIMEOUT)
            return
        real = worlds.real(program)
        if program.wildcards and worlds.real(program, lowest=True) != real:
            event("depends on luck")
            return
        event("ends" if isinstance(real[0], list) else str(real[0]))
        if real[0] in MISFITS and simulated[0] in MISFITS and simulated != real:
            # a receive that is too short ends a process, now or a little later: which
            # other misfits its rank still gets to is chance
            event("several misfits")
            return
        assert simulated == real

    try:
        same()
    finally:
        worlds.close()
