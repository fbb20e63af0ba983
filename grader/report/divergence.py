"""Two runs on the same data beside each other, and where they first differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader.report.rounds import Content, FrameSequence, stuck_ranks

__all__ = ["CellDifference", "Divergence", "cells_that_differ", "compared"]


@dataclass(frozen=True)
class CellDifference:
    """A cell that is not as in a reference.

    Attributes:
        rank: whose cell it is.
        name: heading and place, such as ("x", 2).
        own, wanted: what it holds in either run; ``own`` is ``None`` where there is no such cell.
        own_row, row: its row in either run.
    """

    rank: int
    name: tuple[str, int]
    own: Content | None
    wanted: Content
    own_row: int | None
    row: int

    def __str__(self) -> str:
        mine = self.own.text if self.own and self.own.text else "nothing"
        heading, place = self.name
        return (
            f"rank {self.rank}'s {heading}[{place}] holds {mine},"
            f" in the solution {self.wanted.text or 'nothing'}"
        )


@dataclass(frozen=True)
class Divergence:
    """Where a run first goes another way than a reference.

    Attributes:
        caption: in words, what differs, and whether both end with the same data.
        step: the number of the round, from 1; one past the last round if only the end differs.
        cells: those that differ.
        own_arrows, reference_arrows: the messages that differ, as source and destination.
        is_wrong: whether the run ends with other data, or never ends.
    """

    caption: str
    step: int
    cells: tuple[CellDifference, ...] = ()
    own_arrows: tuple[tuple[int, int], ...] = ()
    reference_arrows: tuple[tuple[int, int], ...] = ()
    is_wrong: bool = True

    @property
    def own(self) -> list[tuple[int, int]]:
        """Rank and row in the run of the cells that differ."""
        return [(of.rank, of.own_row) for of in self.cells if of.own_row is not None and of.own]

    @property
    def reference(self) -> list[tuple[int, int]]:
        """Rank and row in the reference of the cells that differ."""
        return [(of.rank, of.row) for of in self.cells]


def compared(own: FrameSequence, reference: FrameSequence) -> Divergence | None:
    """Return where two runs on the same data first differ, or ``None`` if they do not.

    Messages are compared, and after every round the arguments.  A result may be put together
    earlier or later, so it is compared at the end only.
    """
    wrong = cells_that_differ(own, reference)
    end = "Both end with the same data." if not wrong else f"It ends with other data: {wrong[0]}."
    if own.stuck:
        end = f"It never ends: {stuck_ranks(own.stuck)} no further."
    elif own.rounds != reference.rounds:
        end += f" Yours takes {own.length}, the course's solution {reference.rounds}."
    is_wrong = bool(wrong or own.stuck)
    for step in range(1, max(own.rounds, reference.rounds) + 1):
        found = _messages_differ(own, reference, step)
        if found is not None:
            return replace(found, caption=f"{found.caption} {end}", is_wrong=is_wrong)
        cells = cells_that_differ(own, reference, step)
        if cells:
            if wrong and wrong[0] == cells[0] and not own.stuck:
                end = "It stays so to the end."
            caption = f"The first difference is in round {step}: afterwards {cells[0]}. {end}"
            return Divergence(caption, step, tuple(cells), is_wrong=is_wrong)
    if own.stuck:
        return Divergence(f"Every message is as in the course's solution. {end}", own.rounds)
    if wrong:
        caption = f"Every message is as in the course's solution, but at the end {wrong[0]}."
        return Divergence(caption, own.rounds, tuple(wrong))
    return None


def _messages_differ(own: FrameSequence, reference: FrameSequence, step: int) -> Divergence | None:
    mine, theirs = (
        {
            (arrow.source, arrow.destination): arrow.content.text
            for arrow in (film.frames[step - 1].arrows if step <= film.rounds else ())
        }
        for film in (own, reference)
    )
    if mine == theirs:
        return None
    pairs = [pair for pair in sorted({*mine, *theirs}) if mine.get(pair) != theirs.get(pair)]
    source, destination = pairs[0]
    here, there = mine.get(pairs[0]), theirs.get(pairs[0])
    way = f"rank {source} sends {{}} to rank {destination}"
    if here is None:
        caption = f"in the solution {way.format(there)}, here it does not"
    elif there is None:
        caption = f"{way.format(here)}, in the solution it does not"
    else:
        caption = f"{way.format(here)}, in the solution {there}"
    return Divergence(
        f"The first difference is in round {step}: {caption}.",
        step,
        own_arrows=tuple(pair for pair in pairs if pair in mine),
        reference_arrows=tuple(pair for pair in pairs if pair in theirs),
    )


def cells_that_differ(
    own: FrameSequence, reference: FrameSequence, step: int | None = None
) -> Sequence[CellDifference]:
    """Return the cells that differ after a round, or at the end, where results are compared too."""
    at, there = (own.rounds, reference.rounds) if step is None else (step, step)
    own_rows = own.rows
    found = []
    for rank in range(own.ranks):
        for name, row in reference.rows.items():
            if name[0] == "buffer" or (name[0] == "result" and step is not None):
                continue
            own_row = own_rows.get(name)
            wanted = _cell_at(reference, there, rank, row)
            mine = None if own_row is None else _cell_at(own, at, rank, own_row)
            if wanted is not None and (mine or Content()) != wanted:
                found.append(CellDifference(rank, name, mine, wanted, own_row, row))
    return found


def _cell_at(film: FrameSequence, step: int, rank: int, row: int) -> Content | None:
    column = film.frames[min(step, film.rounds)].cells[rank]
    return column[row] if row < len(column) else None
