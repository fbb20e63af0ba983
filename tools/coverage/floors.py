"""Says which part of each room's functions the tests run, and fails where it falls below a floor.

    python -m tools.coverage.floors    # after `make test`, which ends with it

It counts what ``make test`` has recorded for ``make quick``: a function is covered if a test calls
it, in its own process, in a rank or in a command that it starts.  A sandbox records nothing, so the
rooms for strangers' code have lower floors than their tests deserve.  A floor stands a little below
what was measured; a change that covers less lowers it in the same commit, and says why.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

from tools.coverage.marks import number
from tools.coverage.record import RECORD, RecordedTest, read

ROOT = Path(__file__).resolve().parent.parent.parent

#: Per cent of the functions of each room, which is a folder with all below it, or some modules.
FLOORS = {
    "headcount/src/headcount/*.py": 86,
    "headcount/src/headcount/core": 93,
    "headcount/src/headcount/trace": 89,
    "headcount/src/headcount/rank": 89,
    "headcount/src/headcount/server": 99,
    "headcount/src/headcount/launch": 86,
    "headcount/src/headcount/simulation": 91,
    "headcount/src/headcount/script": 91,
    "grader/*.py": 57,
    "grader/submission": 98,
    "grader/exercise": 94,
    "grader/instruments": 95,
    "grader/judge": 96,
    "grader/report": 98,
    "grader/api": 95,
    "grader/cli": 66,
    "grader/sandbox": 75,
    "grader/classroom": 90,
    "grader/course/*.py": 98,
    "grader/course/chapters": 82,
    "grader/course/bench": 63,
    "grader/course/mpi": 1,  # its ranks' tests are CI's
}


def modules(room: str, root: Path = ROOT) -> list[Path]:
    """Return the modules of a room."""
    return sorted(root.glob(room if room.endswith(".py") else f"{room}/**/*.py"))


def functions(path: Path) -> list[str]:
    """Return the names of a module's functions, methods and inner functions, each once."""
    tree = ast.parse(path.read_bytes())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return sorted({node.name for node in ast.walk(tree) if isinstance(node, kinds)})


def counted(tests: Iterable[RecordedTest], root: Path = ROOT) -> Set[int]:
    """Return what recorded tests have run, of those that are still there."""
    there: dict[str, Set[str]] = {}
    ran: set[int] = set()
    for test in tests:
        file, _, name = test.id.partition("::")
        if file not in there:
            there[file] = set(functions(root / file)) if (root / file).is_file() else set()
        if name.partition("[")[0] in there[file]:
            ran |= test.functions
    return ran


def missed(room: str, ran: Set[int], root: Path = ROOT) -> tuple[int, list[str]]:
    """Return how many functions a room has, and those of them that no test has run."""
    names = [
        (path.relative_to(root).as_posix(), name)
        for path in modules(room, root)
        for name in functions(path)
    ]
    return len(names), [f"{path}: {name}" for path, name in names if number(path, name) not in ran]


def main(
    arguments: Sequence[str],
    floors: Mapping[str, int] = FLOORS,
    record: Path = RECORD,
    root: Path = ROOT,
) -> int:
    """Print each room's part; 0 if none is below its floor.  ``--missed`` names the rest."""
    ran = counted(read(record), root)
    if not ran:
        print("no record of what tests run: `make test` writes one", file=sys.stderr)
        return 2
    below = 0
    for room, floor in floors.items():
        count, left = missed(room, ran, root)
        share = 100 * (count - len(left)) / count
        below += share < floor
        said = "below the floor of" if share < floor else "floor"
        print(f"{room}: {share:.1f} % of {count} functions, {said} {floor} %")
        if "--missed" in arguments:
            print(*(f"    {one}" for one in left), sep="\n")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
