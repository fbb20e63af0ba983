"""Runs the tests that are nearest to a change, in about a minute: ``make quick``.

A change is what differs from the last commit; ``make quick ARGS=main`` takes what differs
from another one.  Nearest are tests that have changed themselves, then tests that import
what has changed, those first that import little else, then the rules of the house.  Of a
chapter that has changed, all answers are judged.  Tests marked ``slow`` are left to
``make test``, those marked ``exhaustive`` to CI; what no longer fits into the time is named.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from grader.course.chapters import discover

ROOT = Path(__file__).resolve().parent.parent

#: Seconds after which no further file of tests is begun.
BUDGET = 60.0

#: The files of a chapter.
_OF_A_CHAPTER = (
    r"(?:solutions/|grader/course/(?:chapters/ch|help/|mistakes/)|tests/(?:accepted|rejected)/)"
    r"(\d\d)_"
)

#: What holds whatever has changed.
ALWAYS = ("tests/test_house.py",)


@dataclass(frozen=True)
class Result:
    """What came of a file of tests, or of a chapter's answers.

    ``status`` is the exit status; pytest's is 5 if a file has no test to run.
    """

    what: str
    status: int
    seconds: float
    output: str


def changed(base: str, root: Path = ROOT) -> list[str]:
    """Return the files that differ from a commit, those that git does not know included."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout.split("\0")[:-1]

    listed = [*git("diff", "--name-only", "--no-renames", "-z", base)]
    listed += git("ls-files", "--others", "--exclude-standard", "-z")
    return sorted({path for path in listed if (root / path).is_file()})


def imports(source: str) -> set[str]:
    """Return the modules that a program imports, and what it may import from them."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def nearest(paths: Iterable[str], tests: Mapping[str, set[str]]) -> list[str]:
    """Return the files of tests that a change concerns, the nearest first.

    Args:
        paths: what has changed.
        tests: for each file of tests, what it imports.
    """
    paths = set(paths)
    modules = {_module(path) for path in paths if path.endswith(".py")}
    by_name = {f"tests/test_{Path(path).stem}.py" for path in paths}
    ranked: dict[str, tuple[int, int]] = {}
    for test, needed in tests.items():
        own = sum(one.startswith("grader.") for one in needed)
        if test in paths:
            ranked[test] = (0, own)
        elif test in by_name:
            ranked[test] = (1, own)
        elif needed & modules:
            ranked[test] = (2, own)
    found = sorted(ranked, key=lambda test: (ranked[test], test))
    return [*found, *(test for test in ALWAYS if test not in found)]


def chapters(paths: Iterable[str]) -> list[str]:
    """Return the numbers of the chapters whose source, exercises, help or answers have changed."""
    return sorted({match[1] for path in paths if (match := re.match(_OF_A_CHAPTER, path))})


def run(what: str) -> Result:
    """Run a file of tests, without those that are slow, or judge a chapter's answers."""
    if what.isdigit():
        words = ["tools.course", *(n for n, one in discover().items() if one.chapter[:2] == what)]
    else:
        words = [
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow and not exhaustive",
            what,
        ]
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    return Result(what, done.returncode, time.monotonic() - started, done.stdout)


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is nearest; 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", nargs="?", default="HEAD", help="a commit to compare with (HEAD)")
    request = parser.parse_args(arguments)
    tests = {
        path.relative_to(ROOT).as_posix(): imports(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "rejected" not in path.parts and "accepted" not in path.parts
    }
    paths = changed(request.base)
    if not paths:
        print(f"nothing differs from {request.base}: make quick ARGS=main compares with main")
        return 0
    started, failed, left = time.monotonic(), 0, []

    def begin(test: str) -> Result | None:
        return run(test) if time.monotonic() - started < BUDGET else None

    wanted = [*chapters(paths), *nearest(paths, tests)]
    with ThreadPoolExecutor(2) as pool:
        for test, result in zip(wanted, pool.map(begin, wanted), strict=True):
            if result is None:
                left.append(test)
                continue
            good = result.status in (0, 5)
            failed += not good
            if not good:
                print(result.output)
            last = (result.output.strip().splitlines() or [""])[-1]
            print(f"{f'chapter {test}' if test.isdigit() else test}: {last}", flush=True)
    print(f"{len(wanted) - len(left)} of {len(wanted)} in {time.monotonic() - started:.0f} s")
    if left:
        print(f"not run, for lack of time: {', '.join(left)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
