"""Holds a whole sandbox to its memory and its time.

Every rank has a limit of its own; together they could still take a machine
down.  The warden looks from outside, where nothing in the sandbox can touch it.
"""

from __future__ import annotations

import contextlib
import threading
import time

import psutil

from grader.core.verdict import Diagnosis

__all__ = ["Warden"]

#: Seconds between two looks: a rank writes a few hundred megabytes in that.
_PERIOD = 0.1


class Warden:
    """Kills a process and all that it started when they exceed their limits.

    Args:
        pid: of the sandbox.
        memory: bytes that all its processes may have resident together.
        seconds: that it may live.
    """

    def __init__(self, pid: int, memory: int, seconds: float) -> None:
        self._top = psutil.Process(pid)
        self._memory = memory
        self._until = time.monotonic() + seconds
        self._seconds = seconds
        self._done = threading.Event()
        #: why it has killed, once it has
        self.reason: tuple[Diagnosis, str] | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True, name="warden")
        self._thread.start()

    def _watch(self) -> None:
        # it is over when the sandbox is; anything else is a fault, and must be heard of
        with contextlib.suppress(psutil.NoSuchProcess):
            while not self._done.wait(_PERIOD):
                if time.monotonic() > self._until:
                    self._end(
                        Diagnosis.TIMEOUT, f"the submission took over {self._seconds:g} s in all"
                    )
                    return
                used = self._resident()
                if used > self._memory:
                    message = (
                        f"the ranks together used {used >> 20} MB;"
                        f" {self._memory >> 20} MB is the limit"
                    )
                    self._end(Diagnosis.MEMORY_LIMIT, message)
                    return

    def _resident(self) -> int:
        """What the processes have to themselves; torch, which they share, counts once each."""
        used = 0
        for process in self._top.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                memory = process.memory_info()
                used += memory.rss - memory.shared
        return used

    def _end(self, diagnosis: Diagnosis, message: str) -> None:
        self.reason = (diagnosis, message)
        # the first process of a PID namespace takes all others with it
        for process in self._top.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._top.kill()

    def close(self) -> None:
        """Stop watching."""
        self._done.set()
        self._thread.join()
