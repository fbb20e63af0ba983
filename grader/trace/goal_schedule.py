"""Conversion of traces to GOAL schedules, for simulators such as LogGOPSim, and back.

GOAL (Group Operation Assembly Language) says what every rank sends, receives and
computes, and what has to be complete, or begun, before what: Hoefler, Siebert and
Lumsdaine, *Group Operation Assembly Language: a flexible way to express collective
communication*, ICPP 2009.  Its text form is what LogGOPSim's ``txt2bin`` reads
(https://github.com/spcl/LogGOPSim)::

    num_ranks 2

    rank 0 {
    l1: send 8b to 1 tag 0
    l2: recv 8b from 1 tag 0
    l2 requires l1
    }

A schedule keeps what was sent to whom, in which order, and what was waited for.  It
does not keep what was in the messages, nor the time between them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from grader.core.errors import RequestError
from grader.core.events import WORLD
from grader.trace.trace import Operation, Trace

__all__ = ["GoalSchedule", "Task", "follow", "from_goal", "to_goal"]


@dataclass(frozen=True)
class Task:
    """One line of a rank's schedule.

    Attributes:
        label: its name, unique on its rank.
        kind: ``send``, ``recv`` or ``calc``.
        size: bytes of a message, or nanoseconds of a calculation.
        peer: the other rank; 0 for ``calc``.
        tag: the tag of the message.
        requires: labels of tasks that must be complete before it begins.
        irequires: labels of tasks that must have begun before it begins.
    """

    label: str
    kind: str
    size: int
    peer: int = 0
    tag: int = 0
    requires: list[str] = field(default_factory=list)
    irequires: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GoalSchedule:
    """The tasks of every rank, by rank."""

    tasks: tuple[tuple[Task, ...], ...]

    def __str__(self) -> str:
        lines = [f"num_ranks {len(self.tasks)}"]
        for rank, tasks in enumerate(self.tasks):
            lines += ["", f"rank {rank} {{", *(line for t in tasks for line in _lines(t)), "}"]
        return "\n".join(lines) + "\n"


def _lines(task: Task) -> Iterator[str]:
    if task.kind == "calc":
        yield f"{task.label}: calc {task.size}"
    else:
        way = "to" if task.kind == "send" else "from"
        yield f"{task.label}: {task.kind} {task.size}b {way} {task.peer} tag {task.tag}"
    for word, labels in (("requires", task.requires), ("irequires", task.irequires)):
        yield from (f"{task.label} {word} {label}" for label in labels)


# Writing. --------------------------------------------------------------------


def to_goal(trace: Trace) -> str:
    """Write a trace as a GOAL schedule, without the messages that were never matched.

    Tags of subgroups are renumbered above all others, since a schedule has no groups.

    Raises:
        RequestError: the trace holds calls of collectives, whose messages it does not show.
    """
    calls = {op.kind for ops in trace.operations for op in ops if not op.is_message}
    if calls:
        raise RequestError(
            f"there are no messages of {', '.join(sorted(calls))} in this record; a schedule"
            " needs them: simulate the run instead"
        )
    tags = _tags(trace)
    return str(GoalSchedule(tuple(tuple(_tasks(ops, tags)) for ops in trace.operations)))


def _tags(trace: Trace) -> dict[tuple[str, int], int]:
    """Return the tag in the schedule of every group and tag."""
    pairs = sorted({(op.group, op.tag) for ops in trace.operations for op in ops})
    free = max((tag for _, tag in pairs), default=0) + 1
    found: dict[tuple[str, int], int] = {}
    for group, tag in pairs:
        if group == WORLD:
            found[group, tag] = tag
        else:
            found[group, tag], free = free, free + 1
    return found


def _tasks(operations: Sequence[Operation], tags: dict[tuple[str, int], int]) -> Iterator[Task]:
    met = [op for op in operations if op.partner is not None]
    labels = {op.number: f"l{place}" for place, op in enumerate(met, 1)}
    told: set[int] = set()
    for place, op in enumerate(met):
        before = met[:place]
        # what the rank had seen complete at this post, and not at an earlier one
        seen = [b for b in before if b.done is not None and b.done <= op.posted]
        fresh = [b.number for b in seen if b.number not in told]
        told.update(fresh)
        begun = before[-1:] if before and before[-1].number not in fresh else []
        yield Task(
            labels[op.number],
            op.kind,
            op.nbytes,
            op.peer,
            tags[op.group, op.tag],
            [labels[number] for number in fresh],
            [labels[b.number] for b in begun],
        )


# Reading. --------------------------------------------------------------------

_NAME = r"[a-zA-Z][a-zA-Z0-9_]*"
_END = r"(?: cpu \d+)?(?: nic \d+)?"
_RANKS = re.compile(r"num_ranks (\d+)")
_RANK = re.compile(r"rank (\d+) ?\{")
_MESSAGE = re.compile(rf"({_NAME}) ?: ?(send|recv) (\d+) ?b (to|from) (\d+)(?: tag (\d+))?{_END}")
_CALC = re.compile(rf"({_NAME}) ?: ?calc (\d+){_END}")
_NEEDS = re.compile(rf"({_NAME}) (i?requires) ({_NAME})")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def from_goal(text: str) -> GoalSchedule:
    """Read a GOAL schedule, ignoring the processors and network cards that it may name.

    Raises:
        RequestError: the text is not a schedule; the message names the line.
    """
    ranks: list[dict[str, Task]] | None = None
    current: dict[str, Task] | None = None
    # comments of several lines must not change the line numbers
    plain = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, raw in enumerate(plain.splitlines(), 1):
        line = " ".join(raw.split())
        if not line:
            continue
        try:
            if ranks is None:
                ranks = [{} for _ in range(int(_match(_RANKS, line)[1]))]
            elif current is None:
                current = ranks[int(_match(_RANK, line)[1])]
            elif line == "}":
                current = None
            else:
                _read(line, current, len(ranks))
        except (ValueError, LookupError):
            raise RequestError(f"line {number} of the schedule makes no sense: {line!r}") from None
    if ranks is None or current is not None:
        raise RequestError("the schedule ends in the middle; the last line of a rank is }")
    return GoalSchedule(tuple(tuple(tasks.values()) for tasks in ranks))


def _match(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    found = pattern.fullmatch(line)
    if found is None:
        raise ValueError(line)
    return found


def _read(line: str, tasks: dict[str, Task], size: int) -> None:
    if needs := _NEEDS.fullmatch(line):
        task, word, other = tasks[needs[1]], needs[2], tasks[needs[3]]
        (task.requires if word == "requires" else task.irequires).append(other.label)
        return
    if calc := _CALC.fullmatch(line):
        task = Task(calc[1], "calc", int(calc[2]))
    else:
        label, kind, nbytes, way, peer, tag = _match(_MESSAGE, line).groups()
        if (way == "to") != (kind == "send") or int(peer) >= size:
            raise ValueError(line)
        task = Task(label, kind, int(nbytes), int(peer), int(tag or 0))
    if task.label in tasks:
        raise ValueError(line)
    tasks[task.label] = task


# Following. ------------------------------------------------------------------


def follow(schedule: GoalSchedule) -> None:
    """Carry out the calling rank's part of a schedule: ``simulate(follow, n, schedule)``.

    Tasks begin as soon as their requirements are met, whatever their order in the file; the
    bytes of messages are zeros.  A calculation becomes a sleep, which is exact on simulated
    ranks only.

    Raises:
        RequestError: the remaining tasks require each other.
    """
    waiting = list(schedule.tasks[dist.get_rank()])
    begun: dict[str, dist.Work | float] = {}
    complete: set[str] = set()
    while waiting or len(complete) < len(begun):
        for task in list(waiting):
            if set(task.requires) <= complete and set(task.irequires) <= begun.keys():
                begun[task.label] = _begin(task)
                waiting.remove(task)
        if waiting and len(complete) == len(begun):
            stuck = ", ".join(task.label for task in waiting)
            raise RequestError(f"{stuck} wait for each other, and nothing else is left to do")
        for label, work in begun.items():
            if label in complete:
                continue
            if isinstance(work, float):
                time.sleep(max(0.0, work - time.perf_counter()))
                complete.add(label)
                break
            if work.is_completed():
                complete.add(label)
                break


def _begin(task: Task) -> dist.Work | float:
    if task.kind == "calc":
        return time.perf_counter() + task.size * 1e-9
    data = torch.zeros(task.size, dtype=torch.uint8)
    call = dist.isend if task.kind == "send" else dist.irecv
    work = call(data, task.peer, tag=task.tag)
    assert work is not None
    return work
