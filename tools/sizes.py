"""Says how many lines of Python the packages have, and fails where one outgrows its limit.

    python -m tools.sizes    # make lint runs it

A limit is what the package has to stay below; the goal is what it should come down to.  A change
that needs more raises the limit in the same commit, and says what was bought with it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Part:
    """A part of the house.

    Attributes:
        name: what it is called.
        folders: its folders.
        limit: the lines that it may have.
        goal: the lines that it should come down to.
        without: folders in these that count as another part.
    """

    name: str
    folders: tuple[str, ...]
    limit: int
    goal: int
    without: tuple[str, ...] = ()

    def lines(self, root: Path) -> int:
        """Return the lines that it has."""
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in self.files(root))

    def files(self, root: Path) -> Iterable[Path]:
        """Return its modules."""
        left = [root / folder for folder in self.without]
        for folder in self.folders:
            for path in sorted((root / folder).rglob("*.py")):
                if not any(path.is_relative_to(other) for other in left):
                    yield path


PARTS = (
    Part("headcount", ("headcount/src",), 32_420, 25_000),
    Part("grader without the course", ("grader",), 30_960, 27_000, ("grader/course",)),
    Part("chapters", ("grader/course/chapters",), 12_815, 12_000),
)


def main(root: Path = ROOT) -> int:
    """Print the sizes; 0 if none is over its limit."""
    over = 0
    for part in PARTS:
        lines = part.lines(root)
        over += lines > part.limit
        said = f"over its limit of {part.limit:,}" if lines > part.limit else f"goal {part.goal:,}"
        print(f"{part.name}: {lines:,} lines of Python, {said}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
