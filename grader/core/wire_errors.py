"""What can go wrong between the judge and a rank, for use inside this package."""

from __future__ import annotations

from grader.core.verdict import Diagnosis

__all__ = ["BrokenFrame", "Refused", "TooMuch"]


class BrokenFrame(Exception):
    """Bytes from a rank that no program of ours sends; someone wrote into the pipe."""


class Refused(BrokenFrame):
    """What an honest rank may say, and the judge does not take.

    Args:
        what: reads after "rank 2".
        diagnosis: the word for it.
    """

    def __init__(self, what: str, diagnosis: Diagnosis) -> None:
        super().__init__(what)
        self.diagnosis = diagnosis


class TooMuch(Refused):
    """More operations, or news of them, than the judge will remember."""

    def __init__(self, what: str) -> None:
        super().__init__(what, Diagnosis.TOO_MANY_MESSAGES)
