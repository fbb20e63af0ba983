"""A watched run, round by round: what every rank holds, and what travels.

A round is a unit of time of the replay in :mod:`headcount.trace.trace`.  What a rank holds after a
round is what was last seen in its tensors before it finished a message of a later one, so sums that
it makes in place belong to the round whose message brought the term.

What a round does is told from the numbers before and after it, and only where they leave no doubt:
a cell that holds its old number plus the one that arrived was added to.  A phase such as
"reduce-scatter" is named only if the names of its data say so at both of its ends.

A run that hangs has rounds up to where it stands still; there, the ranks that wait are marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import groupby
from math import nan
from typing import Any

from grader.exercise.verdict import listed
from grader.report.looks import Standing
from headcount.core.events import Held, Seen
from headcount.core.values import Tag, show, tag_of
from headcount.core.verdict import Diagnosis, Failure
from headcount.trace.trace import Operation, Trace

__all__ = [
    "Arrow",
    "BufferUpdate",
    "Content",
    "Frame",
    "FrameSequence",
    "Halt",
    "MOST_CELLS",
    "film",
    "stuck_ranks",
]

# The rounds as data. --------------------------------------------------------------

#: Largest number of cells drawn for a rank.
MOST_CELLS = 32


@dataclass(frozen=True)
class Content:
    """The content of a cell or of a message.

    Attributes:
        text: as it is written.
        owners: ranks whose data is in it, for the colour; none if unknown.
    """

    text: str = ""
    owners: tuple[int, ...] = ()


class BufferUpdate(Enum):
    """What a rank does with a message that arrives, as its cells show it."""

    ADDS = "adds what it receives to its own", "add what they receive to their own"
    REPLACES = (
        "replaces its own data with what it receives",
        "replace their own data with what they receive",
    )
    STORES = "stores what it receives", "store what they receive"
    REPEATS = "receives what it already holds", "receive what they already hold"
    COMPUTES = (
        "computes something new from what it receives",
        "compute something new from what they receive",
    )
    ASIDE = (
        "receives into a tensor that is not shown here",
        "receive into tensors that are not shown here",
    )

    def sentence(self, ranks: Sequence[int], world_size: int) -> str:
        """Return who does it, and what: "Ranks 1 and 2 store what they receive."."""
        one, several = self.value
        if len(ranks) == world_size > 1:
            return f"Each rank {one}."
        if len(ranks) == 1:
            return f"Rank {ranks[0]} {one}."
        return f"Ranks {listed(ranks)} {several}."


@dataclass(frozen=True)
class Arrow:
    """A message of a round.

    Attributes:
        source, destination: ranks.
        content: what it carries.
        size: "2 × float32 (8 bytes)".
        site: the line that sent it.
        leaves, enters: number of the cell in the source's and the
            destination's column where it begins and ends, if that is drawn.
        cells: how many cells it takes from there.
        update: what the destination does with it; ``None`` if the contents were not recorded.
    """

    source: int
    destination: int
    content: Content
    size: str
    site: str
    leaves: int | None
    enters: int | None
    cells: int
    update: BufferUpdate | None = None


#: A rank's cells from the top; ``None`` where it has none and another rank has one.
Cells = tuple[Content | None, ...]


@dataclass(frozen=True)
class Frame:
    """The state at one step.

    Attributes:
        cells: for each rank its column of cells, before the round.
        arrows: the messages of the round.
        changed: for each rank the numbers of the cells that are different after the round.
        caption: what the round does, in sentences.
        phase: the part of the algorithm that it belongs to, such as "reduce-scatter"; empty if
            the run has one part only, or one that has no name.
    """

    cells: tuple[Cells, ...]
    arrows: tuple[Arrow, ...]
    changed: tuple[tuple[int, ...], ...] = ()
    caption: str = ""
    phase: str = ""

    @property
    def routes(self) -> str:
        """The messages of the round in words: ``0→1 a0,  1→2 a1``."""
        return ",  ".join(f"{a.source}→{a.destination} {a.content.text}" for a in self.arrows)

    @property
    def update(self) -> BufferUpdate | None:
        """What all receivers of the round do, if they do the same."""
        updates = {arrow.update for arrow in self.arrows}
        return updates.pop() if len(updates) == 1 else None


#: Ranks of which a sentence says why they go no further; of more it names the ranks alone.
_MOST_SAID = 2


@dataclass(frozen=True)
class Halt:
    """What a rank does where a run hangs.

    Attributes:
        label: two short lines to stand below its column: "waits", "for 1".
        caption: what it does: "waits to send to rank 1 at line 5".
        standing: how it looks.
        peers: the ranks that it waits for.
    """

    label: tuple[str, str]
    caption: str
    standing: Standing = Standing.WAITS
    peers: tuple[int, ...] = ()


@dataclass(frozen=True)
class FrameSequence:
    """A run: a frame for every round, and one of how it ends.

    Attributes:
        headings: what the cells of every column are, one for each group of
            cells: ("x", 4), ("result", 4).
        frames: the rounds; the last has no messages.
        ring: whether ranks talk to their neighbours on a ring alone.
        roots: what else is said of some ranks: ``{1: "src"}``.
        halts: of a run that hangs, the ranks that never end, and those that have returned.
        cycle: of a run that hangs, ranks that each wait for the next, and the last for the first.
    """

    title: str
    headings: tuple[tuple[str, int], ...]
    frames: tuple[Frame, ...]
    ring: bool = False
    roots: Mapping[int, str] = field(default_factory=dict)
    halts: Mapping[int, Halt] = field(default_factory=dict)
    cycle: tuple[int, ...] = ()

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.frames[0].cells)

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return len(self.frames) - 1

    @property
    def length(self) -> str:
        """How many rounds there are, in words."""
        return "1 round" if self.rounds == 1 else f"{self.rounds} rounds"

    @property
    def rows(self) -> dict[tuple[str, int], int]:
        """The row of every cell by heading and place, such as ``("x", 2)``."""
        names = [(name, i) for name, count in self.headings for i in range(count)]
        return {name: row for row, name in enumerate(names)}

    def table(self) -> str:
        """Return the rounds as text, one line each."""
        lines = []
        phases = [frame.phase for frame in self.frames]
        for number, frame in enumerate(self.frames[:-1], 1):
            if frame.phase and (number == 1 or phases[number - 2] != frame.phase):
                lines.append(f"{frame.phase} phase: {_lower_first(frame.caption)}")
            lines.append(f"round {number}:  {frame.routes}")
        for rank, column in enumerate(self.frames[-1].cells):
            cells = " ".join(cell.text or "·" for cell in column if cell is not None)
            if rank in self.stuck:
                holds = f", and holds  {cells}" if cells else ""
                lines.append(f"rank {rank} {self.halts[rank].caption}{holds}")
            elif cells:
                lines.append(f"rank {rank} ends with  {cells}")
            elif rank in self.halts:
                lines.append(f"rank {rank} {self.halts[rank].caption}")
        return "\n".join(lines) or "no messages"

    @property
    def stuck(self) -> list[int]:
        """The ranks that never end."""
        return [rank for rank, halt in self.halts.items() if halt.standing is not Standing.ENDED]

    @property
    def halt(self) -> str:
        """Where a run that hangs stands still, in a sentence; empty if it ends."""
        if not self.stuck:
            return ""
        said = [f"rank {rank} {self.halts[rank].caption}" for rank in self.stuck]
        if len(said) > _MOST_SAID:
            said = [f"{stuck_ranks(self.stuck)} no further"]
        awaited = {peer for rank in self.stuck for peer in self.halts[rank].peers} - {*self.stuck}
        over: dict[str, list[int]] = {}
        for rank in sorted(awaited & self.halts.keys()):
            over.setdefault(self.halts[rank].caption, []).append(rank)
        said += [
            f"rank {ranks[0]} {caption}"
            if len(ranks) == 1
            else f"ranks {listed(ranks)} {caption.replace('has', 'have', 1)}"
            for caption, ranks in over.items()
        ]
        return f"It hangs here: {'; '.join(said)}."


def stuck_ranks(ranks: Sequence[int]) -> str:
    """Return "rank 1 goes" or "ranks 0 and 1 go"."""
    return f"rank {ranks[0]} goes" if len(ranks) == 1 else f"ranks {listed(ranks)} go"


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].removesuffix(".")


@dataclass(frozen=True)
class _Region:
    """Elements that are drawn as cells."""

    buffer: int
    offset: int
    count: int
    group: tuple[int, int]


#: Groups of cells below those of the arguments: the result, and the memory that is neither and
#: that a message was in last.
_RESULT, _BUFFER = (1, 0), (2, 0)


def film(
    trace: Trace,
    title: str,
    tags: bool,
    names: Sequence[str] = (),
    roots: Mapping[int, str] | None = None,
    failure: Failure | None = None,
) -> FrameSequence:
    """Return the rounds of a watched run.

    Args:
        trace: of a run with ``watched`` set.
        title: name of the function that ran.
        tags: whether the values are tags, see :class:`headcount.core.values.Tag`.
        names: of the function's arguments.
        roots: what else is said of some ranks, see :class:`FrameSequence`.
        failure: why the run failed, if it did; of one that hung, ranks that never end are named.
    """
    snapshots = trace.tensor_snapshots or ((),) * trace.world_size
    regions = [list(_regions(of)) for of in snapshots]
    groups = _groups(regions)
    frames = _frames(trace, regions, groups, tags)
    if groups and any(
        arrow.update is BufferUpdate.ASIDE for frame in frames for arrow in frame.arrows
    ):
        # messages end in memory that is no argument: it is shown as well
        received = (op.count for of in trace.operations for op in of if op.kind == "recv")
        groups[_BUFFER] = min(max(received), MOST_CELLS)
        frames = _frames(trace, regions, groups, tags)
    headings = tuple((_heading(group, names), count) for group, count in groups.items())
    return FrameSequence(
        title,
        headings,
        tuple(_with_phases(frames)) if tags else tuple(frames),
        not trace.strangers(),
        roots or {},
        dict(sorted(_halts(trace, failure), key=lambda of: of[0])) if failure is not None else {},
        failure.cycle if failure is not None else (),
    )


def _halts(trace: Trace, failure: Failure) -> Iterator[tuple[int, Halt]]:
    """Yield the ranks that wait in a deadlock, or had not ended at a time limit, and the others."""
    if failure.diagnosis is Diagnosis.DEADLOCK:
        for wait in failure.waits:
            which = "any" if wait.any_of else "all"
            whom = str(wait.peers[0]) if len(wait.peers) == 1 else which
            standing = Standing.CYCLE if wait.rank in failure.cycle else Standing.WAITS
            label = ("waits", f"for {whom}") if wait.peers else ("waits", "for itself")
            yield wait.rank, Halt(label, wait.text, standing, wait.peers)
        spans = enumerate(trace.call_spans)
        returned = {rank for rank, span in spans if span.how == "returned"} | {*failure.ended}
        for rank in returned - {*failure.killed}:
            yield rank, Halt(("has", "returned"), "has returned", Standing.ENDED)
        for rank in failure.killed:
            yield rank, Halt(("has been", "killed"), "has been killed", Standing.ENDED)
    elif failure.diagnosis is Diagnosis.TIMEOUT:
        for rank, span in enumerate(trace.call_spans):
            if span.entered is not None and span.left is None:
                caption = "had not ended when its time was over"
                yield rank, Halt(("has not", "ended"), caption, Standing.RUNS)


def _frames(
    trace: Trace,
    regions: Sequence[Sequence[_Region]],
    groups: Mapping[tuple[int, int], int],
    tags: bool,
) -> list[Frame]:
    columns = [
        _Column(trace, rank, regions[rank], groups, tags) for rank in range(trace.world_size)
    ]
    rounds = trace.traffic.rounds
    states = [tuple(column.values(number) for column in columns) for number in range(rounds + 1)]
    drawn = [tuple(map(_Column.contents, columns, state)) for state in states]
    found = []
    for number, cells in enumerate(drawn):
        changed = _changed(cells, drawn[number + 1]) if number < rounds else ()
        arrows = tuple(_arrows(trace, number, columns, states))
        frame = Frame(cells, arrows, changed)
        found.append(replace(frame, caption=_caption(frame)))
    return found


def _groups(regions: Sequence[Sequence[_Region]]) -> dict[tuple[int, int], int]:
    """Return how many cells every group takes, from the top."""
    found: dict[tuple[int, int], int] = {}
    for of in regions:
        for group in {region.group for region in of}:
            count = sum(region.count for region in of if region.group == group)
            found[group] = max(count, found.get(group, 0))
    return dict(sorted(found.items()))


def _heading(group: tuple[int, int], names: Sequence[str]) -> str:
    if group in (_RESULT, _BUFFER):
        return "result" if group == _RESULT else "buffer"
    return dict(enumerate(names)).get(group[1], "argument")


#: A cell's number; NaN where the memory has not been seen yet, ``None`` where there is no cell.
Values = tuple[float | None, ...]


class _Column:
    """One rank's column of cells, at any round."""

    def __init__(
        self,
        trace: Trace,
        rank: int,
        regions: Sequence[_Region],
        groups: Mapping[tuple[int, int], int],
        tags: bool,
    ) -> None:
        self.content = partial(_tag_content, trace.world_size) if tags else _number_content
        self.tags = tags
        # for every cell the memory and the element that it shows
        self._places: list[tuple[int, int] | None] = []
        for group, count in groups.items():
            if group == _BUFFER:
                continue
            here = [
                (region.buffer, region.offset + i)
                for region in regions
                if region.group == group
                for i in range(region.count)
            ]
            self._places += [*here, *[None] * (count - len(here))]
        snapshots = trace.tensor_snapshots[rank] if trace.tensor_snapshots else ()
        finished = sorted(
            (op.done, start + 1)
            for op in trace.operations[rank]
            if op.is_message and op.done is not None and (start := trace.start(op)) is not None
        )
        known = {region.buffer for region in regions}
        # other memory of messages: what is received is in it after the round, what is sent before
        self._buffers = sorted(
            (start + (op.kind == "recv"), op.kind == "send", op.buffer, op.offset, op.count)
            for op in trace.operations[rank]
            if op.is_message and op.buffer not in known
            if op.done is not None and (start := trace.start(op)) is not None
        )
        self._room = groups.get(_BUFFER, 0)
        #: the first cell that is neither argument nor result
        self.buffer = len(self._places)
        self._seen = [
            (max((after for done, after in finished if done <= seen.time), default=0), seen)
            for seen in snapshots
            if isinstance(seen, Seen)
        ]

    def values(self, number: int) -> Values:
        """Return what the rank holds after ``number`` rounds."""
        memory: dict[int, list[float]] = {}
        for after, seen in self._seen:
            if after <= number:
                memory[seen.buffer] = seen.values
        return tuple(
            None if place is None else dict(enumerate(memory.get(place[0], ()))).get(place[1], nan)
            for place in self._shown(number)
        )

    def _shown(self, number: int) -> list[tuple[int, int] | None]:
        """Return what every cell shows after ``number`` rounds."""
        found = list(self._places)
        buffers = [buffer for buffer in self._buffers if buffer[0] <= number]
        address, offset, count = buffers[-1][2:] if buffers else (0, 0, 0)
        # address 0 is no memory
        found += [(address, offset + i) if i < count else (0, i) for i in range(self._room)]
        return found

    def contents(self, values: Values) -> Cells:
        """Return numbers as they are drawn."""
        return tuple(
            None if value is None else Content() if math.isnan(value) else self.content(value)
            for value in values
        )

    def sent(self, op: Operation) -> list[float]:
        """Return the numbers of one of its messages, as they were when it was posted."""
        values: list[float] = []
        for _, seen in self._seen:
            if seen.buffer == op.buffer and seen.time <= op.posted:
                values = seen.values
        return values[op.offset : op.offset + op.count]

    def place(self, op: Operation, number: int) -> int | None:
        """Return the cell where an end of a message lies after ``number`` rounds."""
        end, shown = (op.buffer, op.offset), self._shown(number)
        return shown.index(end) if end in shown else None


def _regions(snapshots: Sequence[Held | Seen]) -> Iterator[_Region]:
    """Yield the arguments and the result, as far as there is room; each memory once."""
    shown: set[tuple[int, int]] = set()
    room = MOST_CELLS
    for held in snapshots:
        if isinstance(held, Held) and (held.buffer, held.offset) not in shown and room:
            count = min(held.count, room)
            shown.add((held.buffer, held.offset))
            room -= count
            group = _RESULT if held.role == "result" else (0, held.place)
            yield _Region(held.buffer, held.offset, count, group)


def _arrows(
    trace: Trace, number: int, columns: Sequence[_Column], states: Sequence[Sequence[Values]]
) -> Iterator[Arrow]:
    for op in trace.sends():
        if op.partner is None or trace.start(op) != number:
            continue
        here, there = columns[op.rank], columns[op.partner.rank]
        sent = here.sent(op)
        before, after = (states[number + i][op.partner.rank] for i in (0, 1))
        leaves, enters = here.place(op, number), there.place(op.partner, number + 1)
        if leaves is None:
            # a copy is shown where the same data are
            leaves = _first_match(sent, states[number][op.rank])
        update = None
        if after:
            touched = [i for i, _ in enumerate(after) if _differ(before[i], after[i])]
            used = [i for i in touched if i < there.buffer]
            if enters is not None and not (enters >= there.buffer and used):
                touched = [*range(enters, min(enters + op.count, len(after)))]
            else:
                # what arrives in a buffer is shown where it ends up
                touched = used or touched
                if touched == [*range(touched[0], touched[0] + op.count)] if touched else False:
                    enters = touched[0]
            # where nothing was drawn, nothing can be replaced, nor in a buffer
            drawn = [
                before[i] if i < there.buffer and _text(there, before[i]) else nan for i in touched
            ]
            own = [value for value in before if there.tags and _text(there, value)]
            update = _classify_update(sent, drawn, [after[i] for i in touched], own)
        yield Arrow(
            op.rank,
            op.partner.rank,
            _join_contents([here.content(value) for value in sent])
            or Content("token" if not op.count else "data"),
            f"{op.count} × {op.dtype} ({op.nbytes} bytes)",
            str(op.site),
            leaves,
            enters,
            op.count,
            update,
        )


def _text(column: _Column, value: float | None) -> str:
    return "" if value is None or math.isnan(value) else column.content(value).text


def _first_match(sent: Sequence[float], column: Values) -> int | None:
    """Return the first cell at which a column holds these numbers, one after another."""
    places = range(len(column) - len(sent) + 1) if sent else range(0)
    return next((i for i in places if list(column[i : i + len(sent)]) == sent), None)


def _classify_update(
    sent: Sequence[float], before: Sequence[Any], after: Sequence[Any], own: Sequence[Any]
) -> BufferUpdate:
    """Return what was done with a message.

    Args:
        sent: its numbers.
        before, after: the cells that it concerns.
        own: what else the rank held; none if sums do not show what they are made of.
    """
    if not before:
        return BufferUpdate.ASIDE
    # element by element where each has its cell, else with any of them
    terms = [[value] for value in sent] if len(sent) == len(before) else [sent] * len(before)
    found = {_classify_cell_update(*cell, own) for cell in zip(terms, before, after, strict=True)}
    if len(found) > 1:
        found.discard(BufferUpdate.REPEATS)
    if found == {BufferUpdate.STORES, BufferUpdate.REPLACES}:
        return BufferUpdate.REPLACES
    return found.pop() if len(found) == 1 else BufferUpdate.COMPUTES


def _classify_cell_update(
    terms: Sequence[float], before: float, after: float, own: Sequence[float]
) -> BufferUpdate:
    """Return what was done with one of the terms that may have arrived for a cell."""
    if not _differ(before, after):
        return BufferUpdate.REPEATS if after in terms else BufferUpdate.ASIDE
    if after in terms:
        # what was 0 before may as well have been added to
        was_something = not math.isnan(before) and before != 0
        return BufferUpdate.REPLACES if was_something else BufferUpdate.STORES
    sums = [value + term for value in (before, *own) for term in terms]
    if any(math.isclose(value, after, rel_tol=1e-6) for value in sums):
        return BufferUpdate.ADDS
    return BufferUpdate.COMPUTES


def _differ(one: float | None, other: float | None) -> bool:
    """Return whether two numbers differ; NaN is equal to itself here."""
    return one != other and not (one != one and other != other)


def _changed(before: Sequence[Cells], after: Sequence[Cells]) -> tuple[tuple[int, ...], ...]:
    """Return for each rank the cells that differ."""
    return tuple(
        tuple(i for i, (one, other) in enumerate(zip(*columns, strict=True)) if one != other)
        for columns in zip(before, after, strict=True)
    )


def _caption(frame: Frame) -> str:
    """Return what a round does, in sentences."""
    size = len(frame.cells)
    found = []
    for update in BufferUpdate:
        ranks = sorted({arrow.destination for arrow in frame.arrows if arrow.update is update})
        if ranks:
            found.append(update.sentence(ranks, size))
    receivers = {arrow.destination for arrow in frame.arrows}
    alone = [rank for rank, cells in enumerate(frame.changed) if cells and rank not in receivers]
    if len(alone) == 1:
        found.append(f"Rank {alone[0]} also changes its own data.")
    elif alone:
        found.append(f"Ranks {listed(alone)} also change their own data.")
    return " ".join(found)


# The phases of a run. -------------------------------------------------------------


def _with_phases(frames: Sequence[Frame]) -> Iterator[Frame]:
    """Yield the frames with the names of their phases, if there are several and all have one.

    A phase is a stretch of rounds that all do the same.
    """
    kinds = [
        BufferUpdate.REPLACES
        if frame.update in (BufferUpdate.STORES, BufferUpdate.REPLACES)
        else frame.update
        for frame in frames[:-1]
    ]
    stretches = [[i for i, _ in of] for _, of in groupby(enumerate(kinds), lambda kind: kind[1])]
    names = []
    for stretch in stretches:
        start, end = frames[stretch[0]], frames[stretch[-1] + 1]
        kind = kinds[stretch[0]]
        names.append(
            _reduction_name(end)
            if kind is BufferUpdate.ADDS
            else _copy_name(start, end)
            if kind is BufferUpdate.REPLACES
            else ""
        )
    named = len(names) > 1 and all(names)
    for stretch, name in zip(stretches, names, strict=True):
        yield from (replace(frames[i], phase=name if named else "") for i in stretch)
    yield frames[-1]


def _named_contents(frame: Frame) -> list[set[Content]]:
    """Return what every rank holds that has a name."""
    return [{cell for cell in column if cell and cell.owners} for column in frame.cells]


def _reduction_name(end: Frame) -> str:
    """Return the name of a phase that adds, from where the whole sums are in the end."""
    size = len(end.cells)
    whole = [
        {cell for cell in held if cell.owners == tuple(range(size))}
        for held in _named_contents(end)
    ]
    every = set().union(*whole)
    at = [[rank for rank in range(size) if cell in whole[rank]] for cell in every]
    if not at:
        return ""
    if all(len(ranks) == size for ranks in at):
        return "all-reduce"
    if any(len(ranks) > 1 for ranks in at):
        return ""
    holders = {ranks[0] for ranks in at}
    if len(holders) == 1:
        return "reduce"
    return "reduce-scatter" if len(holders) == min(size, len(every)) else ""


def _copy_name(start: Frame, end: Frame) -> str:
    """Return the name of a phase that copies, from who holds what all have in the end."""
    common = set.intersection(*_named_contents(end))
    at = [
        [rank for rank, held in enumerate(_named_contents(start)) if cell in held]
        for cell in common
    ]
    if not at or any(len(ranks) != 1 for ranks in at):
        return ""
    holders = {ranks[0] for ranks in at}
    if len(holders) == 1:
        return "broadcast"
    return "all-gather" if len(holders) == min(len(end.cells), len(common)) else ""


# Contents. ------------------------------------------------------------------------


def _join_contents(contents: Sequence[Content]) -> Content | None:
    """Return several cells as one, such as the contents of a message."""
    if not contents:
        return None
    text = " ".join(c.text or "·" for c in contents[:3]) + (" …" if len(contents) > 3 else "")
    owners = sorted({owner for content in contents for owner in content.owners})
    return Content(text, tuple(owners))


def _tag_content(ranks: int, value: float) -> Content:
    tag: Tag | None = tag_of(value, ranks)
    if tag is not None:
        return Content(str(tag), tag.owners)
    # a buffer that has not been written to holds arbitrary numbers
    return Content()


def _number_content(value: float) -> Content:
    whole = math.isfinite(value) and value == int(value)
    return Content(show(int(value) if whole else value))
