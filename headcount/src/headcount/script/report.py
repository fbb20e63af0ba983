"""The report on a script that has run: text for a terminal, and one JSON object."""

from __future__ import annotations

import json
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from headcount.core.errors import RequestError, signal_name
from headcount.core.events import ANY
from headcount.core.source_locations import live_line, with_source
from headcount.core.verdict import Failure, Hang, Site, Wait, amount, folded, ordinal, ranks_text
from headcount.script.tally import CallTally

__all__ = [
    "ExitStatus",
    "ScriptRun",
    "exit_status",
    "json_report",
    "show",
    "text_report",
    "wait_lines",
    "wait_object",
    "wrapped",
    "write_file",
]

#: The version of the JSON object.
VERSION = 1


class ExitStatus(IntEnum):
    """What ended a script; 2 is a wrong request."""

    OK = 0
    SCRIPT_FAILED = 1
    COMMUNICATION_FAULT = 3
    TIMED_OUT = 4
    HEADCOUNT_FAILED = 5


def exit_status(failure: Failure | None) -> ExitStatus:
    """Return the exit status of a run: 0, or why it failed."""
    if failure is None:
        return ExitStatus.OK
    if failure.diagnosis.communication_fault:
        return ExitStatus.COMMUNICATION_FAULT
    if failure.diagnosis.runs_out:
        return ExitStatus.TIMED_OUT
    if failure.diagnosis.untrusted:
        return ExitStatus.HEADCOUNT_FAILED
    return ExitStatus.SCRIPT_FAILED


#: Seconds of waiting that the report names.
_WORTH_TELLING = 0.05

#: Remarks that the report shows.
_REMARKS = 5

#: Lines of ranks that wait, which a report shows.
_WAITS = 8


@dataclass(frozen=True)
class ScriptRun:
    """A script that has run.

    Attributes:
        command: the script and its arguments.
        ranks: the number of ranks.
        failure: why it failed, if it did; what was left over as well, where that counts.
        leftover: what was wrong when all ranks had ended, such as a message that nobody receives.
        remarks: what is probably a mistake, and breaks no rule.
        tally: what the ranks have done.
        seconds: how long they ran.
        ended: whether all ranks have ended well; a ``failure`` is then what NCCL's rules do not
            allow, or what was left over, and communication is at fault whatever it is.
        signal: the signal that has stopped it, or 0.
        compared: how many tensors were compared with their replicas; 0 if that was not asked for.
    """

    command: Sequence[str]
    ranks: int
    failure: Failure | None
    leftover: Failure | None
    remarks: Sequence[str]
    tally: CallTally
    seconds: float
    ended: bool = False
    signal: int = 0
    compared: int = 0

    def status(self) -> int:
        """Return the exit status: 0, or why it failed."""
        if self.signal:
            return 128 + self.signal
        if self.failure is not None and self.ended:
            return ExitStatus.COMMUNICATION_FAULT
        return exit_status(self.failure)

    def why(self) -> Iterator[str]:
        """Yield facts that explain the failure: where the ranks' numbers of calls differ."""
        failure, tally = self.failure, self.tally
        if failure is None or self.ended or not failure.diagnosis.communication_fault:
            return
        apart_by: dict[tuple[int, str, int, int], list[int]] = {}
        for wait in failure.waits:
            if wait.site is None or not wait.call:
                continue
            yield from self._messages(wait)
            mine = tally.passes(wait.rank, wait.call, wait.site)
            for peer in {*wait.peers} & {*failure.ended}:
                theirs = tally.passes(peer, wait.call, wait.site)
                same = tally.in_same_groups(wait.rank, peer, wait.call, wait.site)
                if 0 < theirs != mine and same:
                    call = f"{wait.call} at {wait.site}"
                    apart_by.setdefault((mine, call, peer, theirs), []).append(wait.rank)
        for (mine, call, peer, theirs), ranks in sorted(apart_by.items())[:_WAITS]:
            own = "is at its" if len(ranks) == 1 else "are at their"
            yield (
                f"{ranks_text(ranks)} {own} {ordinal(mine)} {call}, and rank {peer} made {theirs}"
                " there before it ended"
            )
        common, apart = tally.last_common, [*tally.apart.values()]
        if common:
            yield f"the last call that {self._ranks_text(common)} made together was {_made(common)}"
        if apart and apart != [common]:
            who = self._ranks_text(apart[0])
            yield f"the first that {who} made together from different lines was {_made(apart[0])}"
            for later in apart[1:]:
                yield f"later, from others, {_made(later)}"

    def _messages(self, wait: Wait) -> Iterator[str]:
        """Yield for which message of a rank's another waits that has not been sent so often."""
        ends = {
            "recv": ("send", "for", "from", "sent"),
            "send": ("recv", "with", "to", "asked for"),
        }
        if wait.call not in ends or len(wait.peers) != 1:
            return
        (peer,), (other, waits, way, done) = wait.peers, ends[wait.call]
        mine = self.tally.messages[wait.rank, wait.call, peer]
        theirs = self.tally.messages[peer, other, wait.rank]
        # a receive from any rank may be for it as well
        if 0 < theirs < mine and not self.tally.messages[peer, other, ANY]:
            which = f"{waits} its {ordinal(mine)} message {way} rank {peer}"
            yield f"rank {wait.rank} waits {which}, which has {done} {theirs:,}"

    def _ranks_text(self, ranks: Collection[int]) -> str:
        return "all ranks" if len(ranks) == self.ranks else ranks_text(sorted(ranks))


def _made(calls: Mapping[int, tuple[str, str, int]]) -> str:
    """Return a collective call in words: its kind, its line, and for which time ranks made it."""
    places: dict[tuple[str, str, int], list[int]] = {}
    for rank, place in sorted(calls.items()):
        places.setdefault(place, []).append(rank)
    if len(places) == 1:
        ((kind, site, number),) = places
        return f"{kind} at {site}" + f", each for the {ordinal(number)} time" * bool(number)
    return ", ".join(
        f"{kind} at {site} on {ranks_text(ranks)}"
        + f", for the {ordinal(number)} time" * bool(number)
        for (kind, site, number), ranks in places.items()
    )


# Text. ----------------------------------------------------------------------------


def text_report(run: ScriptRun, width: int) -> str:
    """Return the report in lines of at most ``width`` characters, but for quoted source."""
    lines = list(_failed(run)) if run.failure else list(_ended(run))
    notes = [run.leftover.message] if run.leftover and run.leftover is not run.failure else []
    notes += run.remarks[:_REMARKS]
    if len(run.remarks) > _REMARKS:
        notes.append(f"{len(run.remarks) - _REMARKS} more remarks are in the JSON report")
    lines += [("  note", text) for text in notes]
    return wrapped(lines, width)


def wrapped(lines: Sequence[tuple[str, str]], width: int) -> str:
    """Return lines with labels before them, none longer than ``width`` where words allow."""
    found: list[str] = []
    for label, text in lines:
        lead = f"{label:<9} " if label else ""
        found += textwrap.wrap(
            text, max(width, 40), initial_indent=lead, subsequent_indent=" " * len(lead),
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(found)


def _ended(run: ScriptRun) -> Iterator[tuple[str, str]]:
    yield "", f"✓ {_count(run.ranks, 'rank')} ended after {_seconds(run.seconds)}"
    yield from _sums(run)


def _failed(run: ScriptRun) -> Iterator[tuple[str, str]]:
    assert run.failure is not None
    failure = with_source(run.failure, live_line)
    after = f"after {_seconds(run.seconds)}"
    words = f"stopped by {signal_name(run.signal)}" if run.signal else failure.diagnosis.words
    first = f"ended well {after}, but: {words}" if run.ended else f"{words} {after}"
    hang = failure.hang
    if hang is not None:
        first += f", {hang.label}"
    if hang is not None and failure.waits:
        yield "", f"✗ {first}: {hang}"
        yield from _last_calls(run, hang)
        yield from wait_lines(failure.waits, live_line)
    else:
        yield "", f"✗ {first}: {failure.message}"
        yield from _sources(failure)
    for line in failure.detail:
        yield "  also", line
    for line in run.why():
        yield "  why", line
    yield from _sums(run)


def _sources(failure: Failure) -> Iterator[tuple[str, str]]:
    """Yield the lines that a failure points at."""
    for ranks, site in failure.sides:
        if site.line:
            text = live_line(site)
            yield f"  {folded(ranks)}", f"{site}: {text}" if text else str(site)
    for frame in failure.frames if not failure.sides else ():
        if frame.text:
            there = [wait.rank for wait in failure.waits if wait.site == frame.site]
            who = f"rank {there[0]}" if len(there) == 1 else "at"
            yield f"  {who}", f"{frame.site}: {frame.text}"


def wait_lines(
    waits: Iterable[Wait], line_of: Callable[[Site], str] = lambda _: ""
) -> Iterator[tuple[str, str]]:
    """Yield what ranks wait for, those together that wait for the same, the few before the many.

    Args:
        waits: of all ranks that wait.
        line_of: returns the source of a line, or an empty string.
    """
    alike: dict[tuple[str, Site | None, int], list[int]] = {}
    for wait in waits:
        # what a rank waits for in a thread of its own is not what another one waits for
        own = wait.rank if " its " in wait.text else -1
        alike.setdefault((wait.text, wait.site, own), []).append(wait.rank)
    ordered = sorted(alike.items(), key=lambda one: len(one[1]))
    for (text, site, _), ranks in ordered[:_WAITS]:
        verb = text if len(ranks) == 1 else text.replace("waits", "wait", 1)
        source = line_of(site) if site else ""
        yield f"  {folded(ranks)}", f"{verb}: {source}" if source else verb
    if rest := sum(len(ranks) for _, ranks in ordered[_WAITS:]):
        yield "", f"  … and {rest} more, as --json lists"


def _last_calls(run: ScriptRun, hang: Hang) -> Iterator[tuple[str, str]]:
    """Yield what culprits that are gone have called last."""
    last: dict[str, list[int]] = {}
    for rank in hang.culprits if hang.fate else ():
        called = run.tally.last.get(rank)
        text = f"last called {called[0]} at {called[1]}" if called else "has called nothing"
        last.setdefault(text, []).append(rank)
    for text, ranks in sorted(last.items(), key=lambda one: len(one[1]))[:_WAITS]:
        yield f"  {folded(ranks)}", text


def _sums(run: ScriptRun) -> Iterator[tuple[str, str]]:
    """Yield what was called and sent, and who waited for whom."""
    tally = run.tally
    if run.compared and run.failure is None:
        yield (
            "  same",
            f"{_count(run.compared, 'tensor')} as the replicas on other ranks, bit for bit",
        )
    kinds = Counter[str]()
    for (_, kind), number in tally.calls.items():
        kinds[kind] += number
    if kinds:
        called = ", ".join(f"{number:,} × {kind}" for kind, number in kinds.most_common(6))
        given = max(tally.bytes.values(), default=0)
        yield "  calls", f"{called}; {amount(given)} given by one rank at most"
    if (longest := tally.longest_wait()) is not None and longest.seconds >= _WORTH_TELLING:
        times = "once" if longest.times == 1 else f"{longest.times:,} times"
        yield (
            "  waited",
            f"rank {longest.rank} for rank {longest.peer}: {_seconds(longest.seconds)} in"
            f" {longest.kind} at {longest.site}, {times}",
        )


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.1f} s"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


# JSON. ----------------------------------------------------------------------------


def json_report(run: ScriptRun) -> str:
    """Return one JSON object, in one line."""
    failure, tally = run.failure, run.tally
    longest = tally.longest_wait()
    found: dict[str, Any] = {
        "version": VERSION,
        "command": list(run.command),
        "ranks": run.ranks,
        "ok": run.status() == ExitStatus.OK,
        "status": run.status(),
        "stopped": signal_name(run.signal) if run.signal else None,
        "seconds": round(run.seconds, 3),
        "failure": None if failure is None else _failure(failure, list(run.why())),
        "leftover": None if run.leftover is None else _failure(run.leftover, []),
        "remarks": list(run.remarks),
        "calls": [
            {"rank": rank, "kind": kind, "count": number}
            for (rank, kind), number in sorted(tally.calls.items())
        ],
        "replicas_compared": run.compared,
        "bytes": [tally.bytes[rank] for rank in range(run.ranks)],
        "longest_wait": None
        if longest is None
        else {
            "rank": longest.rank,
            "for": longest.peer,
            "kind": longest.kind,
            "file": longest.site.path,
            "line": longest.site.line,
            "seconds": round(longest.seconds, 6),
            "times": longest.times,
        },
    }
    return json.dumps(found, ensure_ascii=False)


def write_file(option: str, path: str, text: str) -> None:
    """Write a file that an option names; what is not UTF-8 becomes an escape of JSON.

    Raises:
        RequestError: it cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise RequestError(f"{option} {path} cannot be written: {error.strerror}") from None


def show(text: str, data: str, path: str | None) -> None:
    """Print a report, and write it as data to the file of ``--json``, if one is named.

    Raises:
        RequestError: the file cannot be written.
    """
    print(text, file=sys.stderr if path == "-" else sys.stdout)
    if path == "-":
        print(data)
    elif path:
        write_file("--json", path, data + "\n")


def wait_object(wait: Wait) -> dict[str, Any]:
    """Return what a rank waits for as a JSON object."""
    return {
        "rank": wait.rank,
        "for": list(wait.peers),
        "kind": wait.call,
        "file": wait.site.path if wait.site else None,
        "line": wait.site.line if wait.site else None,
        "text": wait.text,
    }


def _failure(failure: Failure, why: list[str]) -> dict[str, Any]:
    site = failure.site
    return {
        "diagnosis": failure.diagnosis.value,
        "message": failure.message,
        "rank": failure.rank,
        "file": site.path if site else None,
        "line": site.line if site else None,
        "hang": failure.hang and asdict(failure.hang),
        "waits": [wait_object(wait) for wait in failure.waits],
        "ended": list(failure.ended),
        "sides": [
            {"ranks": ranks, "file": site.path, "line": site.line} for ranks, site in failure.sides
        ],
        "why": why,
        "frames": [
            {"file": frame.site.path, "line": frame.site.line, "function": frame.function}
            for frame in failure.frames
        ],
    }
