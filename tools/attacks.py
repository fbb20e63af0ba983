"""Hostile submissions: ``tests/hostile/<family>/<name>.py``.

A comment at the top of each says which promise of ``docs/security.md`` it
attacks, which exercise it pretends to answer, what the verdict has to be, and
which parts (``tests/hostile/_<part>.py``) it is put together from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HOSTILE", "Attack", "attacks"]

HOSTILE = Path(__file__).resolve().parent.parent / "tests" / "hostile"


@dataclass(frozen=True)
class Attack:
    """A hostile submission, and what its head says.

    Attributes:
        path: its file.
        promise: which it attacks, or keeps to if it is a control.
        exercise: what it pretends to answer.
        verdict: the status that it has to get.
        diagnosis: one or several, with ``or`` between them.
        score: what it earns for what it has done, or ``some``; empty for all or nothing.
        says: words of the verdict's message.
        seconds: that the exercise may take; empty for the usual.
        parts: with commas between them.
    """

    path: Path
    promise: str
    exercise: str
    verdict: str
    diagnosis: str | None = None
    score: str | None = None
    says: str = ""
    seconds: str = ""
    parts: str = ""

    @classmethod
    def read(cls, path: Path) -> Attack:
        """Read a file's head.

        Raises:
            ValueError, TypeError: it says too little, or too much.
        """
        head = re.match(r"(?:# .*\n)+", path.read_text(encoding="utf-8"))
        if head is None:
            raise ValueError(f"{path}:1: begin with `# promise: WHAT IT ATTACKS`")
        return cls(path, **dict(re.findall(r"^# (\w+): (.*)$", head[0], re.M)))

    @property
    def is_control(self) -> bool:
        """Whether it does the harmless thing that is nearest to its family's attacks."""
        return self.path.name.startswith("control_")

    @property
    def files(self) -> list[Path]:
        """What it is put together from: the parts that it names, and itself."""
        return [*(HOSTILE / f"_{part}.py" for part in self.parts.split(", ") if part), self.path]

    @property
    def source(self) -> bytes:
        """The one file that is handed in."""
        return b"\n".join(path.read_bytes() for path in self.files)

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"


def attacks() -> list[Attack]:
    """All of them, controls too."""
    return [Attack.read(path) for path in sorted(HOSTILE.glob("*/*.py"))]
