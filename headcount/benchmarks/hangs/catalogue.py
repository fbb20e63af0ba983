"""Every pair of the benchmark, in the order of the table."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.hangs.declare import Pair, pairs

__all__ = ["CLASSES", "Deviation", "ErrorClass", "every_pair", "pairs_named"]


class Deviation(NamedTuple):
    """What one way of running programs says instead of the word of a class of error.

    Attributes:
        words: the diagnoses that it may give, to right programs of the class as well.
        why: the reason, in words.
    """

    words: tuple[str, ...]
    why: str


class ErrorClass(NamedTuple):
    """A class of error: what is wrong, and who finds it.

    ``run``, ``check`` and ``simulate`` say the same word of a program, and nothing of a right one,
    unless it stands here that one of them cannot.
    """

    what: str
    run: Deviation | None = None
    check: Deviation | None = None
    simulate: Deviation | None = None


_ONE_THREAD = Deviation(
    ("exception", "timeout"),
    "simulated ranks share one thread: a second one may compute, and one that communicates or"
    " sleeps is refused with an exception that names its rank; if the first waits for it meanwhile,"
    " the time limit ends both",
)

_IN_CPP = Deviation(
    ("exception",),
    "`DistributedDataParallel` waits in C++, where simulated ranks cannot let each other run, and"
    " is refused",
)

_SOME = Deviation(
    (*_ONE_THREAD.words, *_IN_CPP.words, ""),
    "threads and `DistributedDataParallel` are refused as above, and simulated ranks, which share a"
    " process, share one order of a set",
)

#: The classes of error, by the name of the module that has their programs.
CLASSES = {
    "call_ordering": ErrorClass(
        "other collectives, another order, or one rank misses a call: under `if rank == 0`, by an"
        " early return, in a loop whose length depends on data, in a helper or a hook"
    ),
    "parameter_matching": ErrorClass("root, size, type, reduction or tag differ between ranks"),
    "invalid_parameters": ErrorClass("a rank, root, tag or group that there cannot be"),
    "deadlock": ErrorClass(
        "cycles of 2 to 8 ranks, sends that would need buffering, messages that are never sent or"
        " never received"
    ),
    "message_race": ErrorClass(
        "receives from any rank that are right in one order of arrival only"
    ),
    "request_lifecycle": ErrorClass("requests that are lost or never waited for"),
    "local_concurrency": ErrorClass(
        "buffers that are written, sent or received into while they are in flight, or that share"
        " memory with each other"
    ),
    "groups": ErrorClass(
        "groups made in different orders, by some ranks only, mistaken for others, or destroyed"
    ),
    "threads": ErrorClass(
        "threads that wait for messages, locks and each other", simulate=_ONE_THREAD
    ),
    "futures": ErrorClass("futures of absent ranks, of buffers in use, forgotten ones"),
    "torch_internals": ErrorClass(
        "ranks that are left alone inside torch: in the backward pass of `DistributedDataParallel`,"
        " in its hooks, in `Join`, in a checkpoint that is recomputed",
        simulate=_IN_CPP,
    ),
    "time_limits": ErrorClass("waits that give up"),
    "process_failure": ErrorClass("exceptions, exits, signals"),
    "public_issues": ErrorClass("mistakes that people have reported in public", simulate=_SOME),
}


def every_pair() -> list[Pair]:
    """Return all pairs, class by class."""
    for name in CLASSES:
        importlib.import_module(f"benchmarks.hangs.{name}")
    found = pairs()
    return sorted(found, key=lambda pair: _place(pair))


def _place(pair: Pair) -> int:
    return list(CLASSES).index(pair.wrong.error_class.replace(" ", "_"))


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
