"""Why a world failed: the root cause among its consequences.

When one rank raises, dies or waits for a message that never comes, the others soon fail too, and
which failure is reported first is chance.  So all failures are collected, and the cause is chosen
by kind and by rank, never by time.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import replace
from pathlib import Path

from headcount.core.errors import signal_name
from headcount.core.source_locations import is_students, shorten_name
from headcount.core.values import short, with_article
from headcount.core.verdict import (
    Diagnosis,
    Failure,
    Grade,
    Hang,
    HangKind,
    RaisedException,
    Site,
    SourceLine,
    counted,
)
from headcount.core.wire import Raised
from headcount.trace.deadlock import (
    cycle_of,
    given_up,
    held_up,
    never_joined,
    polled_wait,
    stuck,
    told_together,
    wait_of,
    waiters,
)
from headcount.trace.message_matcher import MessageMatcher

__all__ = ["RootCause", "not_understood", "site_in_dump"]

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$', re.M)


def site_in_dump(dump: str) -> Site | None:
    """Return the innermost line of the student's in a dump of Python's fault handler."""
    for match in _FRAME.finditer(dump):
        if is_students(match["file"]):
            return Site(shorten_name(match["file"]), int(match["line"]))
    return None


def callers_in_dump(dump: str, site: Site) -> list[Site]:
    """Return the student's lines from which one was called that is the innermost of a thread.

    Args:
        dump: a dump of Python's fault handler, of all threads.
        site: the innermost line.
    """
    for thread in dump.split("\n\n"):
        sites = [
            Site(shorten_name(match["file"]), int(match["line"]))
            for match in _FRAME.finditer(thread)
            if is_students(match["file"])
        ]
        if sites[:1] == [site]:
            return sites[1:]
    return []


class RootCause:
    """The failures of one job, of which one is the cause.

    Args:
        matcher: knows the failures that show in the matching of messages.

    Attributes:
        urgent: whether to end the world at once, without waiting for the other ranks.
    """

    def __init__(self, matcher: MessageMatcher) -> None:
        self._matcher = matcher
        self._found: list[Failure] = []
        self._expired: list[Failure] = []
        self._victims: list[Failure] = []
        #: whether a rank has left threads behind
        self._threads = False
        self.urgent = False

    def first(self) -> Failure | None:
        """Return the cause, if anything is wrong; of several of a kind, that of the lowest rank."""
        found = self._found + self._matcher.failures or self._expired or self._victims
        return min(found, key=_precedence, default=None)

    def is_recoverable(self) -> bool:
        """Return whether ranks that have all returned or raised are as good as before the job.

        They are after exceptions that the program has raised, and after a buffer that was used too
        early; not where a process, its connections or its memory has suffered, or a thread runs on.
        """
        found = self._found + self._matcher.failures
        return not (self._threads or self._expired or self._victims) and all(
            failure.diagnosis.recoverable for failure in found
        )

    def leftover(self) -> Failure | None:
        """Return what is wrong although every rank has returned, such as an unreceived message."""
        for op in self._matcher.unreceived():
            return Failure(
                Diagnosis.UNMATCHED_MESSAGE,
                f"rank {op.rank} sends {counted(op.count, f'{op.dtype} element')} to rank {op.peer}"
                f" at {op.site}, which rank {op.peer} never receives",
                op.rank,
                op.site,
            )
        made = self._matcher.groups_made
        if len({*made.values()}) > 1 and not self._matcher.killed | self._matcher.late:
            few, many = (choose(sorted(made), key=made.__getitem__) for choose in (min, max))
            return Failure(
                Diagnosis.ORDER_MISMATCH,
                f"rank {few} calls new_group for {counted(made[few], 'group')}, and rank {many} for"
                f" {made[many]}; every rank has to call it for every group, even for those that it"
                " is not in",
                few,
            )
        for op in self._matcher.unwaited():
            towards = {"send": "to", "recv": "from"}.get(op.kind)
            peer = "any rank" if op.wildcard and not op.matched else f"rank {op.peer}"
            which = f"{op.kind} {towards} {peer}" if towards else op.kind
            message = (
                f"rank {op.rank} starts {with_article(which)} at {op.site} and never waits for it"
            )
            if op.by_torch and not op.is_message:
                message = f"rank {op.rank} {never_joined(self._matcher, op.rank)}"
                return Failure(Diagnosis.ORDER_MISMATCH, message, op.rank, op.site)
            if op.limit:
                message = (
                    f"rank {op.rank} gives up waiting for the {which} at {op.blocked_site} after"
                    f" {op.limit / 1000:g} s, and never waits for it again"
                )
            elif op.blocked is not None:
                message = (
                    f"rank {op.rank} returns while another of its threads still waits in the"
                    f" {which} at {op.blocked_site}; end the thread first"
                )
            return Failure(
                Diagnosis.UNWAITED_REQUEST,
                message,
                op.rank,
                op.site,
            )
        return None

    def forged(self, rank: int, what: str) -> None:
        """Note that a rank's socket carried what our code in it never writes."""
        self._found.append(Failure(Diagnosis.TAMPERING, f"rank {rank} sent the judge {what}", rank))
        self.urgent = True

    def not_understood(self, rank: int, error: Exception) -> None:
        """Note that the judge can make no sense of what a rank has reported."""
        self._found.append(not_understood(f"rank {rank}", error, rank))
        self.urgent = True

    def refused(self, rank: int, diagnosis: Diagnosis, what: str) -> None:
        """Note that a rank reports what may be true, but more than the judge takes."""
        self._found.append(Failure(diagnosis, f"rank {rank} {what}", rank))
        self.urgent = True

    def flooded(self, rank: int, limit: int) -> None:
        """Note that a rank printed too much."""
        self._found.append(
            Failure(
                Diagnosis.OUTPUT_LIMIT,
                f"rank {rank} prints more than {limit // 1024} kB",
                rank,
            )
        )
        self.urgent = True

    def raised(self, rank: int, raised: Raised) -> None:
        """Note that a rank's call raised, or that its program could not be loaded."""
        site = Site(*raised.frames[-1][:2]) if raised.frames else None
        where = f"rank {rank}, {site}" if site else f"rank {rank}"
        # in one line: what a program says must not look like lines of the report
        kind = raised.kind if raised.kind.isidentifier() else repr(raised.kind)
        what = " ".join(f"{kind}: {raised.message}".split()).removesuffix(":")
        frames = tuple(SourceLine(Site(file, line), name) for file, line, name in raised.frames)
        detail = (raised.earlier,) if raised.earlier else ()
        if raised.unwritten:
            diagnosis, message = Diagnosis.NOT_ATTEMPTED, "still raises NotImplementedError"
        elif raised.forbidden:
            diagnosis, message = Diagnosis.FORBIDDEN_CALL, f"{where}: {raised.message}"
        elif raised.memory:
            diagnosis, message = Diagnosis.MEMORY_LIMIT, f"{where}: out of memory{_asked(what)}"
        elif raised.code is not None:
            diagnosis = Diagnosis.EXITED
            instead = "" if self._matcher.is_script else " instead of returning"
            message = f"{where}: exits with status {raised.code}{instead}"
        else:
            if raised.kind == "NotImplementedError" and not raised.message and raised.frames:
                what = f"{raised.frames[-1][2]} still raises NotImplementedError"
            diagnosis, message = Diagnosis.EXCEPTION, f"{where}: {what}"
        if raised.expired:
            # a wait that has given up is no deadlock, but the reader wants to know what it was for
            facts = given_up(self._matcher, rank)
            detail = (f"rank {rank} {facts}", *detail) if facts else detail
        self._threads |= raised.threads
        exception = RaisedException(raised.kind, raised.message, raised.name, raised.owner)
        failure = Failure(diagnosis, message, rank, site, detail, frames, raised=exception)
        if raised.expired:
            # a time limit that ends after another rank has failed is a consequence of that
            self._expired.append(failure)
        else:
            (self._victims if raised.transport else self._found).append(failure)

    def ended(self, rank: int, status: int | None, site: Site | None, printed: str) -> None:
        """Note that a rank's process has ended before its answer, or speaks no more.

        Args:
            rank: the rank.
            status: the exit status, negative for a signal; None if it has not ended, as far as one
                knows, and has closed its socket.
            site: the student's line in the dump of its fault handler.
            printed: its output.
        """
        where = f"rank {rank}, {site}" if site else f"rank {rank}"
        if "bad_alloc" in printed:
            diagnosis, message = Diagnosis.MEMORY_LIMIT, f"{where}: out of memory"
        elif status is not None and status >= 0:
            diagnosis = Diagnosis.EXITED
            message = f"{where}: the process exits with status {status} before it has returned"
        elif status is None:
            diagnosis = Diagnosis.EXITED
            message = f"{where}: it has closed its connection to the judge before it has returned"
        else:
            diagnosis = Diagnosis.CRASHED
            message = f"{where}: the process is killed by {signal_name(-status)}"
        self._found.append(Failure(diagnosis, message, rank, site))

    def timed_out(self, where: Failure | None, after: str) -> None:
        """Note where ranks are at a time limit, which ``after`` names."""
        if where is not None:
            self._found.append(replace(where, message=f"no end after {after}: {where.message}"))
        elif not stuck(self._matcher, certain=True):
            # whatever ranks have told, a wait has its end
            self._found.append(Failure(Diagnosis.TIMEOUT, f"no end after {after}"))

    def whereabouts(self, running: list[int], sites: dict[int, Site | None]) -> Failure | None:
        """Return as a failure where ranks are that have not ended.

        If none runs, all wait: for something that may still come, or for time limits of their own.
        Of a deadlock None is returned, since its own failure says more.
        """
        if not running:
            return None if stuck(self._matcher, certain=True) else self._all_wait()
        rank = running[0]
        site = sites[rank]
        at = f" at {site}" if site else ""
        message = f"rank {rank} is still running{at}"
        places = ((r, sites[r]) for r in running[1:])
        detail = tuple(
            f"rank {r} is at {there}" if there and there.line else f"rank {r} is still running"
            for r, there in places
        )
        detail += tuple(
            f"rank {r} {called}" for r in running if (called := never_joined(self._matcher, r))
        )
        # they may wait for what the others are about, or hold what these want
        others = set(range(self._matcher.size)) - {*running} - self._matcher.ended
        waits = {r: wait_of(self._matcher, r) for r in sorted(others)}
        waits |= {r: wait for r in running if (wait := polled_wait(self._matcher, r))}
        detail += tuple(told_together(waits.values()))
        awaited = {peer for wait in waits.values() for peer in wait.peers}
        kind, culprits, fate = HangKind.NEVER_ENTERED, [r for r in running if r not in waits], ""
        if not culprits and (cycle := cycle_of(waits)):
            kind, culprits = HangKind.CIRCLE, cycle
        elif not culprits:
            culprits, fate = sorted(awaited & self._matcher.ended), "ended"
        held = held_up(waiters(waits), culprits) - {*culprits}
        hang = Hang(kind, Grade.SUPPORTED, tuple(culprits), tuple(sorted(held)), fate)
        held |= {*culprits} if kind is HangKind.CIRCLE else set()
        return Failure(Diagnosis.TIMEOUT, message, rank, site, detail, hang=hang if held else None)

    def _all_wait(self) -> Failure | None:
        """Return the failure of ranks that all wait, and may go on."""
        ranks = [rank for rank in range(self._matcher.size) if rank not in self._matcher.ended]
        waits = [wait_of(self._matcher, rank) for rank in ranks]
        if not waits:
            return None
        told = told_together(waits)
        first = waits[0]
        return Failure(Diagnosis.TIMEOUT, told[0], first.rank, first.site, tuple(told[1:]))


def not_understood(who: str, error: Exception, rank: int | None = None) -> Failure:
    """Return the failure of a run whose report the judge can make no sense of.

    A process that has run a student's code may report anything, so that an exception over its
    report is the submission's, although a fault of ours could look the same: the message
    says what to do about that.
    """
    at = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" in {Path(at[0].filename).name}, line {at[0].lineno}" if at else ""
    said = short(f"{type(error).__name__}: {error}", 200)
    message = f"what {who} reports makes no sense to the judge ({said}{where})"
    return Failure(Diagnosis.MALFORMED_REPORT, message, rank)


def _precedence(failure: Failure) -> tuple[int, int]:
    rank = -1 if failure.rank is None else failure.rank
    return failure.diagnosis.precedence, rank


def _asked(message: str) -> str:
    """Return how much memory was asked for, if torch's message says it."""
    found = re.search(r"allocate (\d+) bytes", message)
    return f": asked for {int(found[1]) / 1e9:.1f} GB" if found else ""
