"""``run`` in a notebook: a run of :mod:`headcount` with cards, and what became of arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from grader.api.predictions import recall_prediction
from grader.api.written import written
from grader.report.changes import (
    ChangedArgument,
    changed_arguments,
    nothing_returned,
)
from grader.report.html import failure_html, run_html
from grader.report.text import run_report
from grader.submission.submission import live_program
from headcount import runs
from headcount.core.errors import RunFailed, is_ours
from headcount.core.notebook import display_in_notebook, is_kernel
from headcount.core.resource_limits import DEFAULTS
from headcount.core.verdict import Failure
from headcount.report import failure_report, failure_text, plain, traffic_words

__all__ = ["Run", "run", "run_failed"]

__tracebackhide__ = is_ours


class _FailureCard:
    """Why a run failed, as it is shown."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def __repr__(self) -> str:
        return plain(failure_report(self._failure))

    def _repr_html_(self) -> str:
        return failure_html(self._failure)

    def show(self) -> str:
        """Show it in the cell that runs, and return what is left to say; nothing elsewhere."""
        if not is_kernel():
            return ""  # a terminal shows no more than text, once
        display_in_notebook(self)
        return f"{self._failure.diagnosis.words}, as shown above"


def run_failed(failure: Failure) -> RunFailed:
    """Return the exception for a failed run, which a notebook shows as a card."""
    return RunFailed(failure_text(failure), failure, _FailureCard(failure).show)


class Run(runs.Run):
    """The value of :func:`run`: the results in rank order, and the record of the run.

    It is shown as what the ranks returned; where that is nothing, as what became of the function's
    arguments.  What was sent is below it.
    """

    def error(self) -> RunFailed:
        """Return the exception for a run that has failed, which a notebook shows as a card."""
        assert self.failure is not None
        return run_failed(self.failure)

    @cached_property
    def _parts(self) -> tuple[str, list[ChangedArgument], str]:
        """A run that returned nothing, in the parts that are shown."""
        changed, sent = changed_arguments(self.ranks_alone), traffic_words(self.trace)
        return nothing_returned(self.ranks_alone, self.arguments, changed, sent), changed, sent

    def __repr__(self) -> str:
        if self.failure is None and self._is_empty:
            return plain(run_report(*self._parts))
        return super().__repr__()

    @property
    def _is_empty(self) -> bool:
        """Whether no rank returned anything, as functions do that work in place."""
        return self.killed is None and all(value is None for value in self.values)

    def _repr_html_(self) -> str | None:
        if self.failure is not None:
            return failure_html(self.failure)
        # plain text needs no card
        return run_html(*self._parts) if self._is_empty and self._parts[1] else None


@written("run(broadcast, 4)")
def run(
    function: Callable[..., Any],
    world_size: int,
    *arguments: Any,
    seconds: float = DEFAULTS.run,
    may_fail: bool = False,
    backend: str = "gloo",
    kill: tuple[int, int] | None = None,
    seed: int | None = None,
    semantics: str = "gloo",
    check: str = "",
) -> Run:
    """Run a function on every rank of a fresh world of processes; see :func:`headcount.run`.

    Displayed, the value is what the ranks returned; where that is nothing, what became of the
    arguments, since the function may have worked in place; and below it what was sent.

    Args:
        function: called as ``function(*arguments)`` on every rank.
        world_size: how many ranks.
        arguments: the same for every rank.
        seconds, may_fail, backend, kill, seed, semantics, check: as of :func:`headcount.run`.

    Raises:
        RunFailed: a rank raised, died, hung or broke a rule of communication.  A notebook shows
            the same card for it as for a failed run that is returned.
        RequestError: the function cannot be sent to other processes; or the
            backend is not to be had here; or there is no rank to kill; or there are no such
            semantics, or no such check.
    """
    recall_prediction()
    program = live_program(function, *arguments)
    call = runs.Call(
        program=program,
        name=getattr(function, "__name__", "function"),
        size=world_size,
        arguments=len(arguments),
        seconds=seconds,
        backend=backend,
        kill=kill,
        seed=seed,
        semantics=semantics,
        check=check,
    )
    return call.on_ranks(Run, may_fail)
