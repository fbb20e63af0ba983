"""How a program of the benchmark is declared, and the register of all of them.

A wrong program stands beside its right twin, which differs in the fault alone::

    @wrong(Diagnosis.DEADLOCK, ranks=2, hangs="always")
    def both_receive_first():
        ...
        dist.recv(theirs, other)  # ← here
        dist.send(mine, other)

    @right(both_receive_first, gives=[[1.0], [0.0]])
    def one_receives_first():
        ...

Every program is one function without arguments that every rank runs, with its
helpers inside, so that it can be read and run alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from headcount.core.verdict import Diagnosis

__all__ = ["MARK", "Hangs", "Pair", "Program", "both", "pairs", "right", "wrong"]

#: The comment on a line that a verdict may name first.
MARK = "# ← here"

#: Whether a program hangs where nobody watches it, on gloo alone.
Hangs = Literal["always", "sometimes", "never"]


@dataclass(frozen=True)
class Program:
    """One program of the benchmark.

    Attributes:
        function: what every rank runs.
        ranks: how many ranks it runs on.
        word: the diagnosis it must get; ``None`` for a right one.
        gives: what the ranks of a right program return, in rank order.
        hangs: whether it hangs on plain gloo.
    """

    function: Callable[[], Any]
    ranks: int
    word: Diagnosis | None = None
    gives: Sequence[Any] = ()
    hangs: Hangs = "never"

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.function.__name__

    @property
    def error_class(self) -> str:
        """The class of error, which its module is named after."""
        return self.function.__module__.rpartition(".")[2].replace("_", " ")

    @property
    def file(self) -> str:
        """The file that it stands in."""
        return self.function.__code__.co_filename

    @property
    def lines(self) -> tuple[int, ...]:
        """The numbers of the marked lines."""
        source, first = inspect.getsourcelines(self.function)
        return tuple(first + i for i, line in enumerate(source) if line.rstrip().endswith(MARK))


@dataclass
class Pair:
    """A wrong program and its right twin."""

    wrong: Program
    right: Program | None = field(default=None)


_pairs: dict[Callable[[], Any], Pair] = {}


def pairs() -> list[Pair]:
    """Return every pair declared so far, in the order of declaration."""
    return list(_pairs.values())


def wrong(word: Diagnosis, *, ranks: int, hangs: Hangs) -> Callable[[Callable[[], Any]], Any]:
    """Declare a wrong program, the word it must get, and whether it hangs on plain gloo."""

    def declare(function: Callable[[], Any]) -> Callable[[], Any]:
        _pairs[function] = Pair(Program(function, ranks, word, hangs=hangs))
        return function

    return declare


def right(
    twin: Callable[[], Any], *, gives: Sequence[Any]
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Declare the right twin of a wrong program, and what its ranks return.

    Raises:
        ValueError: the wrong program has a twin already, or ``gives`` is not one
            value for each of its ranks.
    """
    pair = _pairs[twin]
    if pair.right is not None:
        raise ValueError(f"{pair.wrong.name} has a right twin already: {pair.right.name}")
    if len(gives) != pair.wrong.ranks:
        raise ValueError(f"{pair.wrong.name} runs on {pair.wrong.ranks} ranks: one value for each")

    def declare(function: Callable[[], Any]) -> Callable[[], Any]:
        pair.right = Program(function, pair.wrong.ranks, gives=gives)
        return function

    return declare


def both(pairs: Iterable[Pair]) -> list[Program]:
    """Return the wrong and the right program of every pair.

    Raises:
        ValueError: a wrong program has no right twin.
    """
    programs = []
    for pair in pairs:
        if pair.right is None:
            raise ValueError(f"{pair.wrong.name} has no right twin; declare one with @right")
        programs += [pair.wrong, pair.right]
    return programs
