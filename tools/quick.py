"""Runs the tests that a change concerns, in about a minute: ``make quick``.

A change is what differs from the last commit; ``make quick ARGS=main`` takes what differs from
another one.  It concerns files of tests that have changed themselves or bear the name of a file
that has, the rules of the house, and whatever runs a function that has changed: ``make test``
records which functions each test runs, in ranks as well as in its own process.  Of all these the
ones that run little else come first, one of each file of tests before the second of any.  Of a
chapter that has changed, all answers are judged.  What no longer fits into the time is counted.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from grader.course.chapters import discover
from tools.coverage.marks import FOLDERS, number
from tools.coverage.record import RECORD, RecordedTest, read

ROOT = Path(__file__).resolve().parent.parent

#: Where the tests of the code are: the engine's own, and the course's.
TREES = ("headcount/tests", "tests")

#: Seconds that the tests may take, by the record; and those after which no chapter is begun.
BUDGET = 45.0

#: pytest's processes.
WORKERS = max(os.cpu_count() or 1, 2)

#: The files of a chapter.
_OF_A_CHAPTER = r"(?:solutions/|grader/course/(?:chapters/ch|help/|answers/))(\d\d)_"

#: What holds whatever has changed.
ALWAYS = ("tests/system/test_house.py",)

#: How code outside of functions is called, as by Python itself.
_MODULE = "<module>"
_IMPORTS = "<imports>"


def changed(base: str, root: Path = ROOT) -> list[str]:
    """Return the files that differ from a commit, new ones and those that are gone included.

    Raises:
        subprocess.CalledProcessError: there is no such commit, or no repository.
    """
    listed = _git(root, "diff", "--name-only", "--no-renames", "-z", base)
    listed += _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted(set(listed.decode("utf-8", "surrogateescape").split("\0")[:-1]))


def chapters(paths: Iterable[str]) -> list[str]:
    """Return the numbers of the chapters whose source, exercises, help or answers have changed."""
    return sorted({match[1] for path in paths if (match := re.match(_OF_A_CHAPTER, path))})


def functions(source: bytes) -> dict[str, list[str]]:
    """Return the code of a program's functions by their names, without comments and layout.

    What stands outside of functions is that of ``<module>``, or of ``<imports>``.

    Raises:
        SyntaxError, ValueError: it is no program.
    """
    found = defaultdict(list)
    tree = _Without(_is_docstring).visit(ast.parse(source))
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTION):
            found[node.name].append(ast.dump(node))
    outside = _Without(lambda node: isinstance(node, _FUNCTION)).visit(tree)
    imports = [ast.dump(node) for node in ast.walk(outside) if isinstance(node, _IMPORT)]
    rest = _Without(lambda node: isinstance(node, _IMPORT)).visit(outside)
    return {**found, _IMPORTS: imports, _MODULE: [ast.dump(rest)]}


_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORT = (ast.Import, ast.ImportFrom)


class _Without(ast.NodeTransformer):
    """Takes nodes out of a program, with all that they hold."""

    def __init__(self, unwanted: Callable[[ast.AST], bool]) -> None:
        self._unwanted = unwanted

    def visit(self, node: ast.AST) -> Any:
        return None if self._unwanted(node) else self.generic_visit(node)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def touched(before: bytes, after: bytes) -> set[str]:
    """Return the names of functions that differ between two texts of a program.

    All are returned if the code outside of functions differs, which any of them may use, or the
    imports alone do, or one of the texts is no program.
    """
    texts = []
    for text in (before, after):
        with suppress(SyntaxError, ValueError):
            texts.append(functions(text))
    names = {name for text in texts for name in text} - {_IMPORTS}
    if len(texts) < 2:
        return names
    one, other = texts
    differ = {name for name in {*names, _IMPORTS} if one.get(name) != other.get(name)}
    return names if _MODULE in differ or differ == {_IMPORTS} else differ - {_IMPORTS}


def nearest(tests: Iterable[RecordedTest], wanted: Set[int]) -> list[RecordedTest]:
    """Return the tests that run a function of some, the nearest first.

    Within a file of tests, those are nearest that run the fewest functions; of different files,
    the first ones come first, then the second ones.
    """
    concerned = sorted(
        (one for one in tests if one.functions & wanted),
        key=lambda one: (len(one.functions), one.seconds, one.id),
    )
    places: Counter[str] = Counter()
    ranked = []
    for test in concerned:
        file = test.id.partition("::")[0]
        ranked.append((places[file], len(test.functions), test))
        places[file] += 1
    return [test for *_, test in sorted(ranked, key=lambda entry: entry[:2])]


def whole(paths: Iterable[str], tests: Iterable[str]) -> list[str]:
    """Return the files of tests that are run as a whole: changed, named like a change, or rules."""
    paths = set(paths)
    names = {f"test_{Path(path).stem}.py" for path in paths}
    wanted = paths | {*ALWAYS}
    return [test for test in tests if test in wanted or Path(test).name in names]


def fitting(tests: Iterable[RecordedTest], seconds: float) -> list[RecordedTest]:
    """Return those of the tests, in their order, that together take no longer."""
    chosen = []
    for test in tests:
        if test.seconds <= seconds:
            seconds -= test.seconds
            chosen.append(test)
    return chosen


def judge(chapter: str) -> tuple[int, str]:
    """Judge all answers of a chapter; return the exit status and what has been printed."""
    names = [name for name, one in discover().items() if one.chapter[:2] == chapter]
    done = subprocess.run(
        [sys.executable, "-m", "tools.course", *names],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def run(selected: Iterable[str], workers: int = WORKERS) -> int:
    """Run tests, given as ids and as files; return pytest's exit status.

    Of a file those are left out that are slow; of all, those that ``make test`` leaves to CI.
    """
    selected = list(selected)
    files = {one.partition("::")[0] for one in selected}
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "selected"
        listed.write_text("\n".join(selected), encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadgroup"),
            *("-p", "no:cacheprovider", "-p", "tools.coverage.selection"),
            *("--selected", str(listed), "-m", "not exhaustive and not nightly", *files),
        ]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, check=True).stdout


def _before(path: str, base: str) -> bytes:
    """Return the text of a file in a commit; an empty one where it was not there."""
    listed = _git(ROOT, "ls-tree", "--name-only", base, "--", path)
    return _git(ROOT, "show", f"{base}:{path}") if listed else b""


def _now(path: str) -> bytes:
    """Return the text of a file; an empty one where it is gone."""
    return (ROOT / path).read_bytes() if (ROOT / path).is_file() else b""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what a change concerns; 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", nargs="?", default="HEAD", help="a commit to compare with (HEAD)")
    base = parser.parse_args(arguments).base
    try:
        paths = changed(base)
    except subprocess.CalledProcessError as error:
        why = error.stderr.decode(errors="replace").strip().partition("\n")[0]
        parser.error(f"git cannot compare with {base!r}, name a commit such as main: {why}")
    if not paths:
        print(f"nothing differs from {base}: make quick ARGS=main compares with main")
        return 0
    started = time.monotonic()
    wanted = {
        number(path, name)
        for path in paths
        if path.endswith(".py") and path.startswith(FOLDERS)
        for name in touched(_before(path, base), _now(path))
    }
    files = [
        path.relative_to(ROOT).as_posix()
        for tree in TREES
        for path in sorted((ROOT / tree).rglob("test_*.py"))
    ]
    as_a_whole = whole(paths, files)
    recorded = [one for one in read(RECORD) if one.id.partition("::")[0] in files]
    concerned = [
        one for one in nearest(recorded, wanted) if one.id.partition("::")[0] not in as_a_whole
    ]
    numbers = chapters(paths)
    # a chapter's answers are judged beside the tests
    workers = WORKERS - 1 if numbers else WORKERS
    chosen = fitting(concerned, BUDGET * workers)

    def begin(chapter: str) -> tuple[int, str] | None:
        return judge(chapter) if time.monotonic() - started < BUDGET else None

    with ThreadPoolExecutor(1) as beside:
        judged = [(chapter, beside.submit(begin, chapter)) for chapter in numbers]
        failed = run([*as_a_whole, *(one.id for one in chosen)], workers)
        for chapter, future in judged:
            status, output = future.result() or (0, "not judged, for lack of time")
            failed = failed or status
            last = (output.strip().splitlines() or [""])[-1]
            print(f"chapter {chapter}: {output if status else last}")
    if not recorded:
        print("no record of what tests run: `make test` writes one")
    else:
        print(
            f"of {len(concerned)} tests that run what has changed, {len(chosen)} fit into the time"
        )
    print(f"{time.monotonic() - started:.0f} s")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
