"""Why a run failed, and what was sent in one, as text for people."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from headcount.core.verdict import Failure, SourceLine, amount, counted
from headcount.trace.trace import Trace

__all__ = [
    "WIDTH",
    "failure_report",
    "failure_text",
    "plain",
    "shown",
    "traffic_words",
    "visible",
]

#: Width of plain text, as in a terminal of the usual size.
WIDTH = 80


def visible(text: str) -> str:
    """Return a program's text with its control characters spelled out.

    A terminal would obey them, and HTML does not allow them.
    """
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def plain(renderable: RenderableType, width: int = WIDTH) -> str:
    """Return a report as text without colours or trailing blanks."""
    buffer = io.StringIO()
    console = Console(
        file=buffer, width=width, color_system=None, force_jupyter=False, legacy_windows=False
    )
    console.print(renderable)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).rstrip("\n")


def shown(frames: Sequence[SourceLine]) -> Sequence[SourceLine]:
    """Return the frames worth showing: one without source says no more than the message."""
    return frames if len(frames) > 1 or any(frame.text for frame in frames) else ()


def failure_text(failure: Failure) -> str:
    """Return why a run failed, as the message of an exception."""
    lines = [f"{failure.diagnosis.words}: {failure.message}"]
    lines += [f"  · {line}" for line in failure.detail]
    lines += [f"    {frame}" for frame in shown(failure.frames)]
    return visible("\n".join(lines))


def failure_report(failure: Failure, output: Iterable[tuple[int, str]] = ()) -> RenderableType:
    """Report why a run of ranks failed.

    Args:
        failure: the failure.
        output: lines that ranks printed, each with its rank.
    """
    lines: list[RenderableType] = [
        Text.assemble((f"✗ {failure.diagnosis.words}: ", "bold red"), visible(failure.message))
    ]
    lines += [Text(visible(f"  · {line}")) for line in failure.detail]
    lines += [Padding(Text(visible(str(one))), (0, 0, 0, 4)) for one in shown(failure.frames)]
    lines += [Text(visible(f"[rank {rank}] {line}")) for rank, line in output]
    return Group(*lines)


def traffic_words(trace: Trace) -> str:
    """Return what was sent: messages with bytes and rounds, and collectives; empty if nothing."""
    parts = []
    traffic = trace.traffic
    if traffic.messages:
        sent = amount(traffic.bytes) if traffic.bytes != 1 else "1 byte"
        messages, rounds = counted(traffic.messages, "message"), counted(traffic.rounds, "round")
        parts += [messages, sent, rounds]
    calls = _collectives(trace)
    if calls:
        names = (kind if count == 1 else f"{kind} × {count}" for kind, count in calls.items())
        parts.append(f"{counted(calls.total(), 'collective')}: {', '.join(names)}")
    return ", ".join(parts)


def _collectives(trace: Trace) -> Counter[str]:
    """Return how often each collective was called, by all members of a group together."""
    calls: Counter[tuple[str, str]] = Counter()
    for operations in trace.operations:
        own = Counter(
            (op.kind, op.group) for op in operations if not (op.is_message or op.makes_group)
        )
        calls |= own  # the larger number of both
    kinds: Counter[str] = Counter()
    for (kind, _), count in calls.items():
        kinds[kind] += count
    return kinds
