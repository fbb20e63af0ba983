"""Questions to the author of an answer about one of its runs, for a viva.

A question has one answer, which follows from what each rank called and waited for, in order, and
from the rule that a message travels once both of its ends are posted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import torch

from grader.exercise.cases import Case, PerRank
from grader.exercise.declaration import Exercise, JudgedCase
from grader.exercise.verdict import Question, QuestionedRun
from grader.submission.submission import Submission
from headcount.core.values import show
from headcount.core.verdict import Failure, ordinal
from headcount.trace.trace import Operation, Step, Trace, heard_from, programs, replay

#: Calls of the longest run that is asked about, and the number of ranks that is asked about best.
_MOST_CALLS, _BEST_SIZE = 128, 4

#: Characters of the longest inputs, call or value, and of the code of a function.
_SHORT, _MOST_CODE = 90, 10_000

#: A function or class at the left margin, with its name.
_BLOCK = re.compile(r"^(?:class|(?:async )?def) (\w+).*\n(?:(?:[ \t)\]].*)?\n)*", re.MULTILINE)


def questioned(
    exercise: Exercise, submission: Submission, judged: Iterable[JudgedCase]
) -> QuestionedRun | None:
    """Return the run to ask about; of an answer that failed one that failed, on 3 ranks or more."""
    names = {one.name.partition(".")[0] for one in submission.outlines.get(exercise.name, ())}
    blocks = {
        block[1]: (label, text.count("\n", 0, block.start()) + 1, block[0].rstrip()[:_MOST_CODE])
        for label, text in submission.sources.items()
        for block in _BLOCK.finditer(f"{text}\n")
        if block[1] in names
    }
    code = tuple(blocks.values())
    plain = [one for one in judged if one.limit is None and _is_plain(one.case, one.trace)]
    if asked := [one for one in plain if any(one.trace.operations)]:
        best = min(asked, key=lambda j: (j.case.n < 3, j.passed, abs(j.case.n - _BEST_SIZE)))
        case, failure = best.case, best.failure
        ending = "" if failure is None else "hangs" if failure.diagnosis.hangs else "ends early"
        inputs = tuple(_inputs(case, exercise.adapter is not None))
        questions = tuple(questions_on(best.trace, failure))
        return QuestionedRun(case.name, case.n, inputs, ending, code, questions)
    values = tuple(_of_values(exercise.name, plain)) if exercise.adapter is None else ()
    return QuestionedRun("", 1, (), "", code, values)


def _is_plain(case: Case, trace: Trace) -> bool:
    """Return whether nothing but the answer decides what its ranks do, in not too many calls."""
    every = [op for ops in trace.operations for op in ops]
    disturbed = any((case.killed, case.late, case.held, case.network, case.pauses))
    threads = any(op.thread or op.by_torch for op in every)
    return not disturbed and not threads and len(every) <= _MOST_CALLS


def _inputs(case: Case, shapes: bool) -> Iterator[str]:
    """Yield the arguments that take few words, and the shapes of lists of tensors if wanted."""
    for name, value in case.columns.items():
        words = [_in_words(one) for one in (value if isinstance(value, PerRank) else [value])]
        alike = len({*words}) == 1
        text = words[0] if alike else f"{', '.join(words)} on ranks 0 to {case.n - 1}"
        if all(words) and len(text) <= _SHORT and (shapes or "tensor" not in text):
            yield f"{name}: {text}"


def _in_words(value: Any) -> str:
    if isinstance(value, list) and value and all(map(torch.is_tensor, value)):
        return f"tensors of {', '.join('×'.join(map(str, one.shape)) or '1' for one in value)}"
    return repr(value) if isinstance(value, (bool, int, float, str)) else ""


def _is_data(value: Any) -> bool:
    """Return whether a value is shown by what it holds, and not by where it lies."""
    if isinstance(value, dict):
        return all(map(_is_data, (*value, *value.values())))
    if isinstance(value, (list, tuple)):
        return all(map(_is_data, value))
    return value is None or isinstance(value, (bool, int, float, complex, str, torch.Tensor))


def _of_values(name: str, judged: Iterable[JudgedCase]) -> Iterator[Question]:
    """Yield what an answer returns that communicates nothing, where call and value are short."""
    for one in (one for one in judged if one.actual):
        rank = one.case.n - 1
        call = f"{name}({', '.join(map(repr, one.case.arguments(rank)))})"
        value = show(one.actual[rank], _SHORT)
        told = "…" not in value and _is_data(one.actual[rank])
        if told and len(call) <= _SHORT and "tensor" not in call:
            where = f" on rank {rank} of {one.case.n}" * (one.case.n > 1)
            kind = "value" if one.passed else "wrong value"
            yield Question(kind, f"What does {call} return{where}?", value)


# What a run answers. --------------------------------------------------------------


def questions_on(trace: Trace, failure: Failure | None) -> Iterator[Question]:
    """Yield the questions that a run answers.

    Args:
        trace: its calls.
        failure: why it did not end well; ``None`` if it did.
    """
    for wait in () if failure is None else failure.waits:
        if wait.peers and not wait.any_of and wait.site is not None:
            text = f"For which rank does rank {wait.rank} wait when the run hangs, and where?"
            yield Question("waits", text, f"{_ranks(wait.peers)}, in {wait.site}")
    trace = trace.part_where(bool)  # without calls that make groups
    every = [op for ops in trace.operations for op in ops]
    # what comes first from any rank may decide what ranks do from then on
    whole, messages = failure is None and not trace.wildcards, all(op.is_message for op in every)
    for rank, calls in enumerate(trace.operations):
        if trace.wildcards:
            calls = [*takewhile(lambda op: op.kind == "send", calls)]
        yield from _of_order(rank, calls)
        if messages:
            yield from _of_arrivals(trace, rank, calls)
        kinds = Counter(op.kind for op in calls)
        for kind in sorted({op.kind for op in every} - {"recv"}) if whole else ():
            what = "send a message" if kind == "send" else f"call {kind}"
            text = f"How many times does rank {rank} {what} in all?"
            yield Question("count", text, str(kinds[kind]))
    if whole and messages and trace.world_size > 2:
        yield from _of_changes(trace)


def _of_order(rank: int, calls: Sequence[Operation]) -> Iterator[Question]:
    """Yield what a rank calls, and with whom."""
    places = Counter[str]()
    collectives = [op for op in calls if not op.is_message]
    for op in calls:
        places[op.kind] += 1
        nth = ordinal(places[op.kind])
        if op.kind == "recv":
            text = f"From which rank does rank {rank} receive its {nth} message?"
            yield Question("from", text, f"rank {op.peer}")
        elif op.kind == "send":
            text = f"To which rank does rank {rank} send its {nth} message?"
            yield Question("to", text, f"rank {op.peer}")
        elif len({one.kind for one in collectives}) > 1:
            nth = ordinal(collectives.index(op) + 1)
            text = f"Which collective does rank {rank} call as its {nth}?"
            yield Question("which", text, op.kind)
        sizes, nth = {one.count for one in calls if one.kind == op.kind}, ordinal(places[op.kind])
        if op.kind in ("send", "all_reduce", "broadcast") and len(sizes) > 1:
            what = "message that it sends" if op.kind == "send" else f"{op.kind} that it calls"
            text = f"Rank {rank}: how many numbers are in the {nth} {what}?"
            yield Question("size", text, f"{op.count:,}")


def _of_arrivals(trace: Trace, rank: int, calls: Sequence[Operation]) -> Iterator[Question]:
    """Yield what has come when a rank begins a send, except if that is the first that it does."""
    for place, op in enumerate((op for op in calls if op.kind == "send"), 1):
        came = [one for one in calls if one.kind == "recv" and (one.done or op.posted) < op.posted]
        part = [came if other == rank else ops for other, ops in enumerate(trace.operations)]
        heard = heard_from(replace(trace, operations=tuple(part)))[rank] - {rank}
        when = f"When rank {rank} begins its {ordinal(place)} send,"
        if op is not calls[0]:
            text = f"{when} how many messages has it finished receiving?"
            yield Question("before", text, str(len(came)))
            text = f"{when} which other ranks' data can have reached it, directly or not?"
            yield Question("reach", text, _ranks(heard))


def _of_changes(trace: Trace) -> Iterator[Question]:
    """Yield what would happen if a rank did not come, or left out a send."""
    whole = programs(trace)
    for rank, steps in enumerate(whole):
        text = f"Suppose rank {rank} never calls the function. Which other ranks never return?"
        yield Question("absent", text, _stuck([*whole[:rank], [], *whole[rank + 1 :]]))
        sends = [op for op in trace.operations[rank] if op.kind == "send"]
        for place, op in enumerate(sends, 1):
            # a later message to the same rank would be received in its place
            if all(later.peer != op.peer for later in sends[place:]):
                left = [one for one in steps if one.message != (rank, op.number)]
                text = f"Suppose rank {rank} leaves out its {ordinal(place)} send and goes on with"
                stuck = _stuck([*whole[:rank], left, *whole[rank + 1 :]])
                yield Question("without", f"{text} the rest. Which ranks never return?", stuck)


def _stuck(left: Sequence[Sequence[Step]]) -> str:
    """Return the ranks that wait for a message that never travels."""
    start = replay(left)
    waits = [{one.message for one in steps if one.action == "wait"} for steps in left]
    return _ranks([rank for rank, messages in enumerate(waits) if not start.keys() >= messages])


def _ranks(ranks: Collection[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, sorted(ranks)))}" if ranks else "none"
