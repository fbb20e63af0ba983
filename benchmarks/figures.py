"""A figure of ``make bench``: what was measured, what stands beside it, and the goal."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Figure"]


@dataclass(frozen=True)
class Figure:
    """What something costs.

    Attributes:
        what: what was measured.
        value: the cost.
        unit: its unit.
        beside: what it is compared with, measured in the same minute.
        ratio: the cost as a multiple of that; None where nothing stands beside it.
        goal: the largest ratio that is wanted, or the largest cost if there is no ratio; None
            where there is no goal.
    """

    what: str
    value: float
    unit: str
    beside: str = ""
    ratio: float | None = None
    goal: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if there is none."""
        if self.goal is None:
            return None
        return (self.value if self.ratio is None else self.ratio) <= self.goal
