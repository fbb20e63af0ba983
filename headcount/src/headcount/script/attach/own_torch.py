"""Torch itself, in a process of its own.

Its import takes seconds, in which the job is looked for; and its threads may take a process with
them when they end, which shall not be the one that has a report to write.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from typing import Any, cast

from headcount.script.attach.process_memory import UnknownLayout
from headcount.script.attach.recorder_memory import KnownRecorder, check_layout
from headcount.script.attach.store_keys import Arrivals, arrivals

__all__ = ["OwnTorch"]

#: Seconds for an answer: the slowest is the first, which waits for the import.
_PATIENCE = 120


class OwnTorch:
    """A process that answers what only torch can tell; it ends with this one."""

    def __init__(self) -> None:
        # nothing of torch is in this process yet, and no thread runs: what is forked is whole
        context = multiprocessing.get_context("fork")
        self._answers, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._answers), daemon=True)
        self._process.start()
        theirs.close()

    def known_recorder(self) -> KnownRecorder:
        """Return torch's recorder as it is proved to be read rightly.

        Raises:
            UnknownLayout: it cannot be read in this version of torch, or torch does not answer.
            OSError: the system refuses to let this process read itself.
        """
        return cast(KnownRecorder, self._asked())

    def arrivals(self, host: str, port: int) -> Arrivals:
        """Return who has come to the making of each group, as a job's store has it.

        Raises:
            OSError: nothing answers there.
            RuntimeError: it is no store.
            UnknownLayout: torch does not answer.
        """
        return cast(Arrivals, self._asked(host, port))

    def _asked(self, *address: str | int) -> Any:
        try:
            self._answers.send(address)
            if not self._answers.poll(_PATIENCE):
                raise UnknownLayout(f"torch has not answered for {_PATIENCE} s")
            answer = self._answers.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            status = self._process.exitcode
            raise UnknownLayout(f"the process that asks torch has ended with {status}") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(requests: Connection, other_end: Connection) -> None:
    """Answer requests until nobody can ask any more."""
    other_end.close()
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # torch prints pages about a store that does not answer
        os.dup2(quiet, stream)
    while True:
        try:
            address = requests.recv()
        except EOFError:
            return
        answer: object
        try:
            answer = arrivals(*address) if address else check_layout()
        except (UnknownLayout, OSError, RuntimeError) as error:
            answer = error
        requests.send(answer)
