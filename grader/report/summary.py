"""Texts about an exercise that all reports share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from grader.core.verdict import (
    Bound,
    CaseVerdict,
    Diagnosis,
    ExerciseVerdict,
    Failure,
    SourceLine,
    Status,
)
from grader.judge.progress import CourseProgress, ExerciseProgress, ProgressState

__all__ = [
    "failure_text",
    "headline",
    "key_traffic",
    "listed",
    "next_of",
    "orders_tried",
    "output_lines",
    "points",
    "shown",
    "progress_cells",
    "sum_of",
    "title_of",
    "visible",
]

#: Lines of a rank's output that are shown; further ones are only counted.
OUTPUT_LINES = 8


def visible(text: str) -> str:
    """Return a student's text with its control characters spelled out.

    A terminal would obey them, and HTML does not allow them.
    """
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def points(score: float) -> str:
    """Return a number of points without trailing zeros."""
    return f"{score:.2f}".rstrip("0").rstrip(".")


def listed(items: Iterable[object]) -> str:
    """Return items as in ``1, 2 and 3``."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def headline(verdict: ExerciseVerdict) -> str:
    """Return the outcome of an exercise in one line."""
    if verdict.status is Status.PASSED:
        real = sorted({case.world_size for case in verdict.cases if not case.simulated})
        simulated = sorted({case.world_size for case in verdict.cases if case.simulated})
        word = "rank" if real == [1] else "ranks"
        text = f"passed: {len(verdict.cases)} cases on {listed(real)} {word}"
        return f"{text}, and {listed(simulated)} simulated" if simulated else text
    if verdict.status is Status.SKIPPED:
        return f"not judged here: {verdict.message}"
    if verdict.status is Status.ERROR:
        return verdict.message
    if verdict.diagnosis is Diagnosis.NOT_ATTEMPTED or not verdict.cases:
        return f"{verdict.diagnosis}"
    failed = sum(not case.passed for case in verdict.cases)
    return f"{verdict.diagnosis}: {failed} of {len(verdict.cases)} cases failed"


def key_traffic(verdict: ExerciseVerdict) -> str:
    """Return the traffic on the largest world beside its limits; empty without limits."""
    limits = [case for case in verdict.cases if case.bounds]
    if not limits:
        return ""
    largest = max(case.world_size for case in limits)
    grouped: dict[str, list[Bound]] = {}
    for case in limits:
        if case.world_size == largest:
            bound = case.bounds[0]
            # two bounds on one number are given together
            grouped.setdefault(f"{bound.quantity}: {bound.measured}", []).append(bound)
    texts = [f"{number} ({_asked(bounds)})" for number, bounds in grouped.items()]
    simulated = any(case.simulated for case in limits if case.world_size == largest)
    return f"{largest} {'simulated ' if simulated else ''}ranks, {', '.join(texts)}"


def orders_tried(verdict: ExerciseVerdict) -> str:
    """Return how many orders of arrival were tried; empty if no receive had a choice."""
    orders = [case.orders for case in verdict.cases if case.orders is not None]
    return f"receives from any rank: {sum(orders[1:], orders[0])}" if orders else ""


def shown(frames: Sequence[SourceLine]) -> Sequence[SourceLine]:
    """Return the frames worth showing: one without source says no more than the message."""
    return frames if len(frames) > 1 or any(frame.text for frame in frames) else ()


def failure_text(failure: Failure) -> str:
    """Return why a run failed, as the message of an exception."""
    lines = [f"{failure.diagnosis}: {failure.message}"]
    lines += [f"  · {line}" for line in failure.detail]
    lines += [f"    {frame}" for frame in shown(failure.frames)]
    return visible("\n".join(lines))


def _asked(bounds: Sequence[Bound]) -> str:
    """Return ``at most 5 and at least 3``, or ``exactly 5`` where both bounds are the same."""
    if {bound.relation for bound in bounds} == {"≤", "≥"} and len({b.asked for b in bounds}) == 1:
        bounds = [replace(bounds[0], relation="=")]
    return " and ".join(bound.asks for bound in bounds)


def output_lines(case: CaseVerdict) -> list[tuple[int, str]]:
    """Return what the ranks printed, as (rank, line), in rank order and shortened."""
    found = []
    for rank, text in enumerate(case.output):
        lines = text.splitlines()
        found += [(rank, line) for line in lines[:OUTPUT_LINES]]
        if len(lines) > OUTPUT_LINES:
            found.append((rank, f"… {len(lines) - OUTPUT_LINES} more lines"))
    return found


def progress_cells(progress: ExerciseProgress) -> tuple[str, str]:
    """Return a learner's state in an exercise, and the time of the last check."""
    entry = progress.entry
    if entry is None:
        return progress.state.value, ""
    state = progress.state.value
    if progress.state is ProgressState.TRIED:
        state += f", best {points(entry.best)} of {points(entry.max_score)}"
    elif not entry.last_passed:
        state += ", not the last time"
    return state, f"{entry.when.astimezone():%Y-%m-%d %H:%M}"


def title_of(chapter: str) -> str:
    """Return a chapter's name for people, as in ``02 · Broadcast``."""
    number, _, words = chapter.partition("_")
    return f"{number} · {words.replace('_', ' ').capitalize()}"


def next_of(overview: CourseProgress) -> str:
    """Return what to do next, in one line; empty if nothing is known, or all is done."""
    following = overview.next
    if following is None:
        return ""
    return f"Next: {following.name}, in chapter {title_of(following.chapter)}"


def sum_of(overview: CourseProgress) -> str:
    """Return how much of the course is done, in one line."""
    if overview.file is None:
        return "Progress is not kept: GRADER_PROGRESS is set to nothing."
    if not overview.exercises:
        return "What you have passed is not known until that is mended."
    return f"{overview.passed} of {len(overview.exercises)} exercises passed"
