"""Texts about an exercise that all reports share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.exercise.verdict import Bound, CaseVerdict, ExerciseVerdict, Status, Way, listed
from grader.report.looks import Look
from headcount.core.verdict import Diagnosis
from headcount.report import visible
from headcount.trace.trace import ALPHA, BETA

__all__ = [
    "COSTS",
    "SHOULD_BE",
    "WAS",
    "CommonOutcome",
    "CostRow",
    "CoursePlace",
    "MessageParts",
    "RowParts",
    "case_look",
    "case_words",
    "dot",
    "earned",
    "finding",
    "grid",
    "grid_words",
    "headline",
    "hung",
    "in_words",
    "key_traffic",
    "ladder",
    "look_of",
    "orders_tried",
    "outcomes",
    "output_lines",
    "points",
    "praise_of",
    "rank_rows",
    "untouched",
    "world",
]


def points(score: float) -> str:
    """Return a number of points without trailing zeros."""
    return f"{score:.2f}".rstrip("0").rstrip(".")


def earned(verdict: ExerciseVerdict) -> str:
    """Return the points that an exercise has earned: "0.47 of 1 point"."""
    noun = "point" if verdict.max_score == 1 else "points"
    return f"{points(verdict.score)} of {points(verdict.max_score)} {noun}"


#: Points from which on an exercise is a large one.
_LARGE = 3


def praise_of(verdict: ExerciseVerdict, place: CoursePlace) -> str:
    """Return a word of praise for what was large: an exercise, a chapter, the course."""
    if place.passed == place.total:
        return "That was the last one: the course is complete."
    large = verdict.max_score >= _LARGE
    if all(place.chapter):
        return f"{'A big one, and the' if large else 'The'} chapter is complete."
    return "That was a big one. Well done!" if large else ""


def headline(verdict: ExerciseVerdict) -> str:
    """Return the outcome of an exercise in one line."""
    if verdict.status is Status.PASSED and not verdict.cases:
        return "passed"  # how is not for the reader to see
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
    if untouched(verdict):
        return verdict.message
    words = in_words(verdict.diagnosis)
    if verdict.only_misses_point:
        return f"{Look.HALF.word}: {words}"
    ran = [case for case in verdict.cases if case.judged]
    if not ran:
        return words
    if len(ran) == 1 < len(verdict.cases):
        return f"{words}: the only case that ran failed"
    failed = sum(not case.passed for case in ran)
    of = f"{len(ran)} cases{' that ran' * (len(ran) < len(verdict.cases))}"
    return f"{words}: {failed} of {of} failed"


def in_words(diagnosis: Diagnosis | None) -> str:
    """Return what people are told a diagnosis is; "failed" where there is none."""
    return diagnosis.words if diagnosis else "failed"


def untouched(verdict: ExerciseVerdict) -> bool:
    """Return whether an exercise has not been begun, which is no failure to show."""
    return verdict.status is Status.FAILED and verdict.diagnosis is Diagnosis.NOT_ATTEMPTED


def hung(verdict: ExerciseVerdict | CaseVerdict) -> bool:
    """Return whether an answer, or a case of it, ended in a deadlock or a timeout."""
    failed = verdict.status is Status.FAILED
    return failed and verdict.diagnosis is not None and verdict.diagnosis.hangs


def look_of(verdict: ExerciseVerdict) -> Look:
    """Return how an exercise came out: the same on its card, on the class's pages and in text."""
    if verdict.status is not Status.FAILED:
        return Look.from_status(verdict.status)
    if hung(verdict):
        return Look.HUNG
    if verdict.nothing_done:
        return Look.UNTOUCHED
    if verdict.only_misses_point:
        return Look.HALF
    return Look.PARTLY if verdict.score > 0 else Look.FAILED


@dataclass(frozen=True)
class MessageParts:
    """What is wrong first, in three parts.

    Attributes:
        where: the world and the case, such as "On 2 ranks, 7 float32 numbers from rank 1:".
        what: what is wrong there; empty where the rows of the ranks show it.
        more: what else there is to say of that.
        others: other faults, and what they cost.
    """

    where: str
    what: str
    more: str
    others: str = ""


def finding(verdict: ExerciseVerdict) -> MessageParts:
    """Return the message of a failed exercise in parts."""
    case = verdict.gravest_failure
    if case is None or not case.message or case.message not in verdict.message:
        return MessageParts("", verdict.message, "")
    where, _, others = verdict.message.partition(case.message)
    what, more = case.message, ""
    if case.bounds:
        bound = case.bounds[0]
        name, _, shown = what.partition(f": {bound}")
        where = f"{where.strip().rstrip(',')}, {name}"
        what = f"{bound.counted}, {bound.requirement}{shown}"
    if case.by_rank and case.shown_by_rank and what.startswith(case.shown_by_rank):
        more = what.removeprefix(case.shown_by_rank)
        what = ""
    where = f"{'On ' * where[:1].isdigit()}{where.strip().rstrip(':,')}:" if where else ""
    return MessageParts(where, what, more.lstrip(" ;.\n").rstrip(), others.strip(" ;\n"))


@dataclass(frozen=True)
class RowParts:
    """A rank's row, in parts that are equally wide in all rows.

    Attributes:
        rank: "rank 0"; empty where there is one rank only.
        actual: what it holds.
        wrong: the stretches of ``actual`` that are wrong.
        expected: what it should hold; empty of a right row.
        note: "← all three"; of a right row the mark.
        right: whether it is right.
    """

    rank: str
    actual: str
    wrong: tuple[tuple[int, int], ...]
    expected: str
    note: str
    right: bool


#: What stands before the value that a rank should hold.
SHOULD_BE = "should be"

#: What stands before a value as it was before the call.
WAS = "was"

#: Rows that are shown; of more, wrong ones come first.
ROWS = 16


def rank_rows(case: CaseVerdict) -> list[RowParts]:
    """Return the rows of a case; empty where they would say nothing."""
    chosen = case.by_rank
    if len(chosen) > ROWS:
        chosen = tuple(sorted(chosen, key=lambda row: row.right)[:ROWS])
    alone = len(case.by_rank) == 1 == case.world_size
    return [
        RowParts(
            "" if alone else f"rank {row.rank}",
            visible(row.actual),
            row.wrong if visible(row.actual) == row.actual else (),
            "" if row.right else visible(row.expected),
            Look.PASSED.mark if row.right else f"← {visible(row.note)}" * bool(row.note),
            row.right,
        )
        for row in chosen
    ]


#: Marks in the grid of all cases.
_DOTS = {Look.PASSED: "●", Look.UNTOUCHED: "·"}


def case_look(case: CaseVerdict) -> Look:
    """Return how a case came out; one that was given up because of another was not run."""
    if case.passed:
        return Look.PASSED
    return Look.FAILED if case.judged else Look.UNTOUCHED


def case_words(case: CaseVerdict) -> str:
    """Return how a case came out, in words, and why."""
    if case.passed:
        return "; ".join(map(str, case.bounds)) or "right"
    if not case.judged:
        return case.message
    return f"{in_words(case.diagnosis)}: {case.message}" if case.message else "failed"


def grid(verdict: ExerciseVerdict) -> list[tuple[str, list[Look]]]:
    """Return how the cases of every world size came out, with its name."""
    sizes: dict[str, list[Look]] = {}
    for case in sorted(verdict.cases, key=lambda one: (one.simulated, one.world_size)):
        sizes.setdefault(world(case), []).append(case_look(case))
    return list(sizes.items())


def world(case: CaseVerdict) -> str:
    """Return the number of ranks of a case in words."""
    simulated = "simulated " * case.simulated
    return f"{case.world_size} {simulated}rank{'s' * (case.world_size != 1)}"


def dot(look: Look) -> str:
    """Return the mark of a case in the grid."""
    return _DOTS.get(look, look.mark)


def grid_words(verdict: ExerciseVerdict) -> str:
    """Return the grid in words, for those who do not see it."""
    texts = []
    for name, looks in grid(verdict):
        passed, skipped = looks.count(Look.PASSED), looks.count(Look.UNTOUCHED)
        text = f"{name}: {passed} of {len(looks)} passed"
        texts.append(text + f", {skipped} not run" * bool(skipped))
    return "; ".join(texts)


@dataclass(frozen=True)
class CommonOutcome:
    """An outcome, and all cases that came out so.

    Attributes:
        look: how they came out.
        words: the same in words, and why.
        where: which they are, a line for world sizes with cases of the same names.
    """

    look: Look
    words: str
    where: tuple[str, ...]


#: The order of outcomes, from those that matter most.
_OUTCOMES = (Look.FAILED, Look.UNTOUCHED, Look.PASSED)


def outcomes(verdict: ExerciseVerdict) -> list[CommonOutcome]:
    """Return how all cases came out; what is said of several is said once."""
    found: dict[tuple[Look, str], dict[tuple[bool, int], list[str]]] = {}
    for case in verdict.cases:
        sizes = found.setdefault((case_look(case), case_words(case)), {})
        sizes.setdefault((case.simulated, case.world_size), []).append(case.name)
    return [
        CommonOutcome(look, words, tuple(_places(sizes)))
        for (look, words), sizes in sorted(found.items(), key=lambda of: _OUTCOMES.index(of[0][0]))
    ]


def _places(sizes: Mapping[tuple[bool, int], Sequence[str]]) -> Iterator[str]:
    """Yield world sizes and the names of their cases, together where the names are the same."""
    worlds: dict[tuple[bool, str], list[int]] = {}
    for (simulated, size), names in sizes.items():
        worlds.setdefault((simulated, "; ".join(names)), []).append(size)
    for (simulated, names), same in worlds.items():
        noun = f"{'simulated ' * simulated}rank{'s' * (same != [1])}"
        yield f"on {listed(same)} {noun}: {names}"


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
            grouped.setdefault(bound.counted, []).append(bound)
    where = next(world(case) for case in limits if case.world_size == largest)
    exact = [number for number, bounds in grouped.items() if _is_exact(bounds)]
    others = {number: bounds for number, bounds in grouped.items() if number not in exact}
    texts = [f"{number} ({_requirements(bounds)})" for number, bounds in others.items()]
    if exact:
        bounds = [bound for number in exact for bound in grouped[number]]
        if not texts and all((one.quantity, one.measured) == ("messages", 0) for one in bounds):
            return f"It has run on {where} at once, and without a message: none is needed."
        texts.insert(0, f"{listed(exact)}, exactly what is needed")
    return f"On {where}: {'; '.join(texts)}"


@dataclass(frozen=True)
class CostRow:
    """A row of the table of costs.

    Attributes:
        name: the way.
        numbers: its number in each column of :data:`COSTS`, in words; a dash where none is known.
        share: its time as a share of the longest one; 0 where none is known.
        own: whether it is the learner's.
    """

    name: str
    numbers: tuple[str, ...]
    share: float
    own: bool


#: The network of virtual time, in words.
_NETWORK = f"{1e6 * ALPHA:g} µs a message and {1e-9 / BETA:g} GB/s"

#: The columns of the table of costs; the bytes are those of the rank that sends most.
COSTS = ("messages", "bytes per rank", "rounds", "time")


def ladder(verdict: ExerciseVerdict) -> tuple[str, list[CostRow]] | None:
    """Return what a passed exercise costs beside other ways to solve it.

    Returns:
        Where it was measured, and the rows: other ways, the learner's own, and a lower bound.
        None where there is nothing to compare with.
    """
    others = verdict.others
    if others is None:
        return None
    found = [
        case.traffic
        for case in verdict.cases
        if (case.name, case.world_size, case.simulated) == (others.case, others.world_size, 0)
    ]
    if not found or found[0] is None or found[0].seconds is None:
        return None
    mine = found[0]
    yours = Way("yours", mine.messages, mine.max_sent, mine.rounds, mine.seconds)
    *ways, least = others.ways
    rows = [*ways, yours, least]
    longest = max(way.seconds or 0 for way in rows)
    return (
        f"What it costs on {others.world_size} ranks, {others.case}, at {_NETWORK}:",
        [_cost_row(way, longest, way is yours) for way in rows],
    )


def _cost_row(way: Way, longest: float, own: bool) -> CostRow:
    counts = (way.messages, way.max_sent, way.rounds)
    numbers = ["–" if count is None else f"{count:,}" for count in counts]
    numbers.append("–" if way.seconds is None else f"{1e6 * way.seconds:.1f} µs")
    return CostRow(way.name, tuple(numbers), (way.seconds or 0) / longest if longest else 0, own)


def orders_tried(verdict: ExerciseVerdict) -> str:
    """Return how many orders of arrival were tried; empty if no receive had a choice."""
    orders = [case.orders for case in verdict.cases if case.orders is not None]
    return f"receives from any rank: {sum(orders[1:], orders[0])}" if orders else ""


def _is_exact(bounds: Sequence[Bound]) -> bool:
    """Return whether bounds allow one number alone."""
    relations = {bound.relation for bound in bounds}
    return "=" in relations or (
        relations == {"≤", "≥"} and len({bound.asked for bound in bounds}) == 1
    )


def _requirements(bounds: Sequence[Bound]) -> str:
    """Return ``at most 5 and at least 3``, without "at least 0" beside another bound."""
    informative = [bound for bound in bounds if (bound.relation, bound.asked) != ("≥", 0)]
    return " and ".join(bound.requirement for bound in informative or bounds)


#: Lines of a rank's output that are shown, and characters of a line; further ones are counted.
OUTPUT_LINES, _LONGEST = 8, 400


def output_lines(case: CaseVerdict) -> list[tuple[int, str]]:
    """Return what the ranks printed, as (rank, line), in rank order and shortened."""
    found = []
    for rank, text in enumerate(case.output):
        lines = text.splitlines()
        found += [
            (rank, line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…")
            for line in lines[:OUTPUT_LINES]
        ]
        if len(lines) > OUTPUT_LINES:
            found.append((rank, f"… {len(lines) - OUTPUT_LINES} more lines"))
    return found


# The place in the course after a check. -------------------------------------------


@dataclass(frozen=True)
class CoursePlace:
    """A learner's place in the course.

    Attributes:
        passed: the number of exercises that are passed.
        total: the number of exercises.
        chapter: of every exercise of the chapter, whether it is passed.
        next_name: the next exercise that is not passed; empty if all are.
        next_link: the address of its heading, seen from the notebook that was checked;
            empty where its chapter is not beside that.
    """

    passed: int
    total: int
    chapter: tuple[bool, ...]
    next_name: str = ""
    next_link: str = ""

    @property
    def dots(self) -> str:
        """A mark for every exercise of the chapter."""
        return "".join("●" if passed else "○" for passed in self.chapter)

    @property
    def in_words(self) -> str:
        """How much of the chapter is done, which is within reach; the course is far."""
        if all(self.chapter):
            return "chapter complete"
        return f"{sum(self.chapter)} of {len(self.chapter)} in this chapter"
