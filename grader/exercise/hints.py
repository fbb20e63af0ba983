"""The choice of a hint: the one whose cause is proved by all evidence, or none.

A misleading hint is worse than none.  So a hint has to agree with every case, passed
ones included; where two causes explain the same, neither is named, and the bare finding
is given with a gentle question.
"""

from __future__ import annotations

import builtins
import contextlib
import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from grader.exercise.cases import Case
from grader.exercise.compare import compare
from grader.exercise.declaration import Evidence, Exercise
from headcount.core.verdict import Diagnosis

__all__ = ["agree", "choose_hint"]


def choose_hint(
    exercise: Exercise,
    diagnosis: Diagnosis,
    evidence: Evidence | None,
    recognise: Callable[[Evidence], str] = lambda evidence: "",
) -> str:
    """Return a hint for a diagnosis, which claims no more than is proved.

    The first of these that applies is given: what Python's own error messages prove in any
    exercise, a rank that is read from the notebook, the one mistake whose program does what the
    answer does, the first condition of the exercise
    that holds, what else the failure or
    the source proves, the exercise's advice for the diagnosis, the advice for the diagnosis in
    general, and the exercise's first hint, which is a question.

    Args:
        exercise: the exercise.
        diagnosis: of the answer.
        evidence: what was judged; ``None`` if the answer was never run.
        recognise: returns the hint of the mistake whose program does the same, if there is one.
    """
    if diagnosis is Diagnosis.NOT_ATTEMPTED:
        return exercise.help.hints[0]
    if evidence is not None and evidence.failed:
        hint = (
            misused(exercise, evidence)
            or reads_global(exercise, evidence)
            or recognise(evidence)
            or rounded(exercise, evidence)
        )
        if hint:
            return hint
        for prove in (_hint_of_condition, _scattered, miscalled, disagreed, to_itself, rebound):
            hint = prove(exercise, evidence)
            if hint:
                return hint
    hint = exercise.help.advice.get(diagnosis, diagnosis.advice)
    if not hint and diagnosis is Diagnosis.WRONG_VALUE and evidence is not None:
        hint = _advise_smallest_world(evidence) if exercise.world_sizes != (1,) else ""
    return hint or exercise.help.hints[0]


def _scattered(exercise: Exercise, evidence: Evidence) -> str:
    """Return the hint for a message in memory with gaps; an exercise may know of a worse fault."""
    if evidence.raised("NotContiguous"):
        return (
            "A message needs a tensor that is contiguous in memory, and a slice, a transpose or a"
            " gradient often is not: call .contiguous() first."
        )
    return ""


def _advise_smallest_world(evidence: Evidence) -> str:
    """Return advice to look at the smallest world that has a wrong value."""
    n = min((one.case.n for one in evidence.failed), default=1)
    right = {one.case.n for one in evidence.passed if one.limit is None} - {
        one.case.n for one in evidence.failed
    }
    if n == 1:
        return "It is wrong with one rank already, where nothing can be sent: begin there."
    fewer = f" With {max(right)} it is right: what is new?" if right and max(right) > 1 else ""
    if all(op.makes_group for ops in evidence.trace.operations for op in ops):
        return f"Take {n} ranks, and work out by hand what each of them returns.{fewer}"
    return f"Take {n} ranks and a tensor of few numbers, and follow every message by hand.{fewer}"


def _hint_of_condition(exercise: Exercise, evidence: Evidence) -> str:
    """Return the hint of the first condition that holds, or an empty string."""
    for mistake in exercise.mistakes:
        if _condition_holds(mistake.when, evidence):
            return mistake.hint
    return ""


#: What is raised by looking into values or traffic that a case does not have.
_ABSENT = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError)


def _condition_holds(when: Callable[[Evidence], bool], evidence: Evidence) -> bool:
    with contextlib.suppress(*_ABSENT):
        return bool(when(evidence))
    return False


def agree(exercise: Exercise, case: Case, would: Sequence[Any], actual: Sequence[Any]) -> bool:
    """Return whether ranks hold what a mistake would give, up to rounding."""
    terms = exercise.values.reduced(case) if exercise.values.reduced else 0
    scales: list[Any] = (
        list(exercise.values.magnitude(case)) if exercise.values.magnitude else [None] * case.n
    )
    if all(isinstance(one, torch.Tensor) and one.shape == scales[0].shape for one in scales):
        # a mistake may have summed on a rank where nothing was to be summed
        scales = [torch.stack(scales).amax(0)] * case.n
    return all(
        compare(want, got, terms, _slack(want, scale), relative=exercise.values.relative) is None
        for want, got, scale in zip(would, actual, scales, strict=True)
    )


def _slack(want: Any, scale: Any) -> Any:
    """Return what rounding errors are relative to: the terms, or the mistake's largest result.

    Where a mistake sums what should not be summed, the terms are not known, and a small
    result may be the difference of large ones.
    """
    if isinstance(scale, dict) and isinstance(want, dict):
        return {name: _slack(want.get(name), one) for name, one in scale.items()}
    if isinstance(scale, (list, tuple)) and isinstance(want, (list, tuple)):
        fits = len(scale) == len(want)
        return [_slack(*pair) for pair in zip(want, scale, strict=True)] if fits else None
    if not isinstance(scale, torch.Tensor) or not isinstance(want, torch.Tensor):
        return None
    fits = want.dtype != torch.bool and scale.shape == want.shape
    if not fits:
        return None
    # what is infinite, or no number, has no size
    largest = want.abs().nan_to_num(0, 0, 0).amax() if want.numel() else scale
    return torch.maximum(scale.nan_to_num(0, 0, 0), largest)


# Mistakes that can be proved in any exercise. ------------------------------------------------

#: What is imported under these names, and how.
_IMPORTED = {
    "dist": "import torch.distributed as dist",
    "torch": "import torch",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
}
#: What a rank asks for; in the notebook these names are often something else, or nothing.
_ASKED_FOR = {
    "rank": "dist.get_rank()",
    "world_size": "dist.get_world_size()",
}
#: Modules and classes whose attributes are known, with what people call them.
_OWNERS = {
    "torch.distributed": ("torch.distributed", dist),
    "torch": ("torch", torch),
    "torch.Tensor": ("Tensor", torch.Tensor),
}


def misused(exercise: Exercise, evidence: Evidence) -> str:
    """Return what an exception proves together with the source, or an empty string."""
    kind, _, name, owner = evidence.exception
    if kind == "NameError" and name in _IMPORTED:
        return f"{name} is not imported where this line runs: {_IMPORTED[name]}."
    if kind == "NameError" and name in _ASKED_FOR:
        return (
            f"Nothing is called {name} where this line runs. A rank has to ask for it, inside"
            f" the function: {name} = {_ASKED_FOR[name]}."
        )
    if kind == "NameError" and name:
        return _misspelt(name, _known_names(exercise, evidence), "")
    if kind == "UnboundLocalError" and name:
        return (
            f"{name} is used here before this function has given it a value: is it set in"
            " a branch or a loop that was not entered, or assigned only further down?"
        )
    if kind == "AttributeError" and name:
        if owner not in _OWNERS:
            return ""
        called, known = _OWNERS[owner]
        return _misspelt(name, dir(known), f"{called} has no ")
    if evidence.raised("GroupIsSetUp"):
        return (
            "The process group is set up before your function is called, and used again after it:"
            " leave out init_process_group and destroy_process_group, and call dist.get_rank()"
            " right away."
        )
    if evidence.failure is not None and any(wait.other_tag for wait in evidence.failure.waits):
        return (
            "A receive takes only a message that has its own tag: give both ends the same one, or"
            " leave it out."
        )
    if evidence.diagnosis is Diagnosis.WRONG_TYPE and evidence.source and evidence.source[0].yields:
        return (
            "yield makes a generator of a function: a call of it runs none of its lines. Leave"
            " yield out."
        )
    if evidence.diagnosis is Diagnosis.WRONG_TYPE and _returns_nothing(exercise, evidence):
        return (
            f"{exercise.name} never returns anything: a function without return gives None."
            " End it with return and the result."
        )
    return ""


#: Names for what is another on each rank, and for the number of ranks.
_EACH_RANKS = frozenset({"rank", "my_rank", "me", "left", "right", "peer", "partner"})
_NUMBER_OF_RANKS = frozenset({"n", "size", "world_size", "world", "n_ranks", "num_ranks", "nprocs"})


def reads_global(exercise: Exercise, evidence: Evidence) -> str:
    """Return that a rank, or the number of ranks, is read from the notebook, or an empty string."""
    if max(exercise.world_sizes) == 1:
        return ""
    for part in evidence.source:
        for name, value in part.globals.items():
            begin = f"`{name}` is {value} in your notebook, and {part.name} takes it from there:"
            if name in _EACH_RANKS:
                ask = "call dist.get_rank()" if "rank" in name else "find it out"
                return f"{begin} it is {value} on every rank. Inside {part.name}, {ask}."
            if name in _NUMBER_OF_RANKS:
                return (
                    f"{begin} it is {value} however many ranks there are. Inside {part.name}, call"
                    " dist.get_world_size()."
                )
    return ""


def rounded(exercise: Exercise, evidence: Evidence) -> str:
    """Return what wrong integers prove that have become floats on their way, or an empty string."""
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
    values = exercise.values
    for one in evidence.failed:
        # of several right results the one that is nearly held
        right = [values.expected(one.case), *(values.also(one.case) if values.also else ())]
        near = [found for found in (_integers(each, one.actual) for each in right) if found]
        if one.diagnosis is not Diagnosis.WRONG_VALUE or not near:
            return ""
        pairs += near[0]
    want, got = (torch.cat([one.flatten() for one in side]) for side in zip(*pairs, strict=True))
    wrong = want != got
    for dtype, bits in ((torch.float64, 53), (torch.float32, 24)):
        least = want[wrong].abs().amin()
        fits = got[wrong].to(dtype).to(torch.int64) == got[wrong]
        close = (got - want).abs() <= want.abs() >> (bits - _SLACK)
        if least > 2**bits and bool(fits.all()) and bool(close.all()):
            return (
                f"Integers above 2**{bits} are rounded. A {str(dtype)[6:]} holds whole numbers up"
                f" to 2**{bits} only: leave integers in their own dtype, on their way and in sums."
            )
    return ""


#: Bits that several roundings may cost.
_SLACK = 4


def _integers(want: Any, got: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the tensors of integers that ranks should hold, with those that they do hold.

    The list is empty if none of them differs, or one does by more than a float32 rounds.
    """
    pairs: list[tuple[torch.Tensor, torch.Tensor]] = []

    def collect(want: Any, got: Any) -> None:
        if isinstance(want, dict):
            want, got = list(want.values()), list(got.values())
        if isinstance(want, (list, tuple)):
            for pair in zip(want, got, strict=True):
                collect(*pair)
        elif isinstance(want, torch.Tensor) and want.dtype == torch.int64 == got.dtype:
            pairs.append((want, got))

    with contextlib.suppress(*_ABSENT):
        collect(want, got)
        near = all(bool(((g - w).abs() <= w.abs() >> (24 - _SLACK)).all()) for w, g in pairs)
        return pairs if near and any(not torch.equal(*pair) for pair in pairs) else []
    return []


def disagreed(exercise: Exercise, evidence: Evidence) -> str:
    """Return what different sizes in one collective prove, or an empty string."""
    if evidence.failure is not None and evidence.failure.sizes:
        return (
            "The ranks meet in one call, and bring different sizes to it. Do all of them make their"
            " calls for the same tensors, in the same order?"
        )
    return ""


def to_itself(exercise: Exercise, evidence: Evidence) -> str:
    """Return what a refused message to the rank itself proves, or an empty string."""
    if not evidence.raised("PeerIsSelf"):
        return ""
    return (
        "A rank sends to itself, or receives from itself, and that is refused. What a rank has"
        " already needs no message: leave its own number out, or copy."
    )


def miscalled(exercise: Exercise, evidence: Evidence) -> str:
    """Return advice on a call with the wrong arguments, if it is one of the answer's functions."""
    kind, _, name, _ = evidence.exception
    if kind != "TypeError":
        return ""
    if name == exercise.name:
        return f"It is called as {exercise.signature}: keep these parameters, in this order."
    for part in evidence.source:
        if part.name == name:
            asked = ", ".join(part.parameters)
            return f"You have defined it as {name}({asked}), in line {part.line}: call it so."
    return ""


def _known_names(exercise: Exercise, evidence: Evidence) -> list[str]:
    names = {name for part in evidence.source for name in (part.name, *part.assigned)}
    return [*names, *exercise.parameters, "dist", "torch", *dir(builtins)]


def _misspelt(name: str, known: Iterable[str], begin: str) -> str:
    """Return advice on a name that nearly exists; names with leading underscores are left out."""
    public = sorted({other for other in known if not other.startswith("_") and other != name})
    close = difflib.get_close_matches(name, public, 3, 0.75)
    lower = [other for other in public if other.lower() == name.lower()]
    if lower or close:
        return f"{begin or 'There is no '}{name}. Did you mean {(lower or close)[0]}?"
    if begin:
        return f"{begin}{name}."
    return (
        f"Nothing is called {name} where this line runs: is it defined, in a cell that you have"
        " run, and spelt the same?"
    )


def _returns_nothing(exercise: Exercise, evidence: Evidence) -> bool:
    """Return whether a result should be returned, and no return has a value."""
    asked = exercise.returns and evidence.source and evidence.source[0].name == exercise.name
    return bool(asked) and not evidence.source[0].returns


def rebound(exercise: Exercise, evidence: Evidence) -> str:
    """Return what the source proves of lost values: a parameter that is bound to a new tensor."""
    if evidence.diagnosis is not Diagnosis.WRONG_VALUE:
        return ""
    for part in evidence.source:
        for lost in part.lost:
            name = lost.parameter
            return (
                f"`{lost.text}` in {part.name} makes a new tensor and calls it {name}; the"
                f" tensor that {part.name} was given stays as it was, and nobody sees the new"
                f" one. Write into it: {name}.copy_(...), or an operation such as {name} += ..."
            )
    return ""
