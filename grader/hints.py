"""Which hint to give: the one that fits the mistake, if it is recognised."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import torch

from grader.compare import compare
from grader.exercise import Evidence, Exercise, Mistake
from grader.verdict import Diagnosis

__all__ = ["choose_hint"]

#: What helps with a diagnosis where the exercise itself has nothing better.
GENERAL: Mapping[Diagnosis, str] = {
    Diagnosis.MISSING: "Define it at the top level of the file or in a cell of its own, under"
    " exactly this name.",
    Diagnosis.SYNTAX_ERROR: "Run the cell: Python points at the place.",
    Diagnosis.EXCEPTION: "Run it yourself to see the whole traceback: run(function, world_size,"
    " arguments...).",
    Diagnosis.EXITED: "A rank has to return; it may not call sys.exit or os._exit.",
    Diagnosis.CRASHED: "A crash below Python usually means a buffer of the wrong size or type.",
    Diagnosis.TIMEOUT: "Look at the line that is named: does the loop there ever end?",
    Diagnosis.DEADLOCK: "Follow the lines above from rank to rank: somebody has to go first, or"
    " use isend and irecv, which do not wait.",
    Diagnosis.WRONG_TYPE: "Compare with the signature: what is returned, and what is changed in"
    " place?",
    Diagnosis.WRONG_SHAPE: "Compare the shape with that of the input.",
    Diagnosis.WRONG_DTYPE: "Make buffers like the input: torch.empty_like(x) keeps shape and"
    " dtype.",
    Diagnosis.WRONG_VALUE: "Take two ranks and a tensor of one number, and follow every message by"
    " hand.",
    Diagnosis.INPUT_CHANGED: "Work on a copy: x.clone().",
    Diagnosis.ALIASED: "Return a copy: x.clone().",
    Diagnosis.FORBIDDEN_CALL: "That call does work that is left to you here. Build it from send,"
    " recv, isend, irecv and batch_isend_irecv.",
    Diagnosis.TOO_MANY_MESSAGES: "Somebody is sent something that it has or does not need.",
    Diagnosis.TOO_FEW_MESSAGES: "Fewer messages than the exercise asks for cannot do the work: is"
    " something sent in a larger piece than it should be?",
    Diagnosis.TOO_MANY_BYTES: "Send only what the other side needs.",
    Diagnosis.TOO_FEW_BYTES: "Less is sent than has to be moved.",
    Diagnosis.TOO_MANY_ROUNDS: "Messages that could travel at the same time wait for each other:"
    " start them with isend and irecv.",
    Diagnosis.TOO_FEW_ROUNDS: "Fewer rounds than the algorithm takes: is it the one that is asked"
    " for?",
    Diagnosis.NONDETERMINISTIC: "Rounding depends on the order of additions: combine in an order"
    " that follows from the ranks, not from who comes first, and let everybody use the same one.",
    Diagnosis.WRONG_GRADIENT: "Use torch operations that autograd knows, on the tensors that you"
    " were given: no .data, no .detach(), no torch.no_grad(), no numbers taken out with .item().",
    Diagnosis.NOT_NEIGHBOUR: "On a ring everybody talks to (rank ± 1) % world_size alone.",
    Diagnosis.UNMATCHED_MESSAGE: "A message was sent that nobody receives: count sends and"
    " receives of the two ranks.",
    Diagnosis.SIZE_MISMATCH: "Both ends of a message need tensors of the same number of elements:"
    " torch.empty_like helps.",
    Diagnosis.DTYPE_MISMATCH: "Both ends of a message need the same dtype; the bits are not"
    " converted. torch.empty_like keeps it.",
    Diagnosis.BUFFER_RACE: "Between isend, irecv or a collective with async_op=True and its wait()"
    " the tensor belongs to the transport: use another one, or wait first.",
    Diagnosis.UNWAITED_REQUEST: "Keep what isend and irecv return, and call wait() on each before"
    " you return.",
    Diagnosis.ORDER_MISMATCH: "Collectives are matched by order: every rank has to make the same"
    " calls in the same order.",
    Diagnosis.MEMORY_LIMIT: "Is a tensor made in a loop, or with a shape that is far too large?",
    Diagnosis.OUTPUT_LIMIT: "Take the print out of the loop.",
}


def choose_hint(exercise: Exercise, diagnosis: Diagnosis, evidence: Evidence | None) -> str:
    """A hint for a diagnosis.

    In this order: a known mistake that explains the evidence, the exercise's
    advice for the diagnosis, what helps in general, the exercise's first hint.
    """
    if diagnosis is Diagnosis.NOT_ATTEMPTED:
        return exercise.hints[0]
    if evidence is not None:
        for mistake in exercise.mistakes:
            # what ranks hold after a race is not what their program computes
            raced = diagnosis is Diagnosis.BUFFER_RACE and mistake.when is None
            if not raced and _explains(exercise, mistake, evidence):
                return mistake.hint
    return exercise.advice.get(diagnosis) or GENERAL.get(diagnosis) or exercise.hints[0]


def _slack(want: Any, scale: Any) -> Any:
    """What rounding errors are relative to: the terms, or a larger result of the mistake."""
    fits = isinstance(scale, torch.Tensor) and isinstance(want, torch.Tensor)
    return torch.maximum(scale, want.abs()) if fits and scale.shape == want.shape else None


def _explains(exercise: Exercise, mistake: Mistake, evidence: Evidence) -> bool:
    """Whether a mistake fits: what it would give, and whatever else it says."""
    if mistake.gives is not None:
        would = mistake.gives(evidence.case)
        if would is None or len(evidence.actual) != len(would):
            return False
        terms = exercise.reduced(evidence.case) if exercise.reduced else 0
        scales = exercise.magnitude(evidence.case) if exercise.magnitude else [None] * len(would)
        told = zip(would, evidence.actual, scales, strict=True)
        off = exercise.relative
        if any(
            compare(want, got, terms, _slack(want, scale), relative=off)
            for want, got, scale in told
        ):
            return False
        # every rank is as the mistake would have it; with right values it
        # would explain nothing
        right = zip(exercise.expected(evidence.case), evidence.actual, strict=True)
        if all(compare(want, got, terms, relative=off) is None for want, got in right):
            return False
    if mistake.when is not None:
        with contextlib.suppress(
            LookupError, TypeError, AttributeError, ValueError, ArithmeticError
        ):
            return mistake.when(evidence)
        return False
    return mistake.gives is not None
