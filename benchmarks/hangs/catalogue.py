"""Every pair of the benchmark, in the order of the table."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from benchmarks.hangs.declare import Pair, pairs

__all__ = ["CLASSES", "every_pair", "pairs_named"]

#: The modules of programs, each of which is a class of error.
CLASSES = (
    "call_ordering",
    "parameter_matching",
    "invalid_parameters",
    "deadlock",
    "message_race",
    "request_lifecycle",
    "local_concurrency",
    "groups",
    "threads",
    "futures",
    "torch_internals",
    "time_limits",
    "process_failure",
    "public_issues",
)


def every_pair() -> list[Pair]:
    """Return all pairs, class by class."""
    for name in CLASSES:
        importlib.import_module(f"benchmarks.hangs.{name}")
    found = pairs()
    return sorted(found, key=lambda pair: _place(pair))


def _place(pair: Pair) -> int:
    return CLASSES.index(pair.wrong.error_class.replace(" ", "_"))


def pairs_named(words: Iterable[str]) -> list[Pair]:
    """Return the pairs of these classes or with a program of these names; all without words.

    Raises:
        ValueError: a word is neither a class nor a program.
    """
    found, words = every_pair(), list(words)
    if not words:
        return found
    names = [{*_names(pair), pair.wrong.error_class.replace(" ", "_")} for pair in found]
    unknown = set(words) - set().union(*names)
    if unknown:
        raise ValueError(f"no class and no program is called {', '.join(sorted(unknown))}")
    return [pair for pair, known in zip(found, names, strict=True) if known & set(words)]


def _names(pair: Pair) -> set[str]:
    return {program.name for program in (pair.wrong, pair.right) if program is not None}
