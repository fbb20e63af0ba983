"""Mistakes of chapter 16: what people write instead of a count, and the hint that fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.core.verdict import Diagnosis
from grader.course import sizes
from grader.course.cases import Case
from grader.course.chapters.cost_mistakes import wrong
from grader.course.exercise import Evidence, Mistake

__all__ = ["BLOCK", "FLOPS", "MODEL", "STATE", "called", "times"]


def called(c: Case) -> tuple[Any, ...]:
    """The arguments of a case, without those that the call leaves out."""
    return tuple(value for value in c.arguments(0) if value is not None)


def _gives(hint: str, *formulas: Callable[..., Any]) -> Mistake:
    """A wrong formula for what is asked, or one of several."""
    return Mistake(hint, gives=tuple(map(wrong, formulas)))


def times(hint: str, right: Callable[..., Any], factor: float | Callable[..., Any]) -> Mistake:
    """The right formula, and a factor that should not be there, or is missing."""

    def formula(*arguments: Any) -> Any:
        return right(*arguments) * (factor(*arguments) if callable(factor) else factor)

    return _gives(hint, formula)


def _rounded(right: Callable[..., int]) -> Mistake:
    """A count that has gone through a float and come back as another one."""

    def nearly(e: Evidence) -> bool:
        if e.diagnosis is not Diagnosis.WRONG_VALUE or type(e.actual[0]) is not int:
            return False
        count = right(*called(e.case))
        return abs(e.actual[0] - count) <= count / 10**12

    return Mistake(
        "Right but for the last digits: a float holds 16 of them, and the count has more. Stay"
        " with whole numbers all the way: // and no /, 16 and not 16.0.",
        when=nearly,
    )


_BLOCK = sizes.transformer_block_params

BLOCK = (
    _rounded(_BLOCK),
    Mistake(
        "glu stands after a bare * in your header, so it can be passed by name only; here it is"
        " passed by its place. Leave out the *.",
        when=lambda e: (
            e.says("takes 1 positional argument but 2") and len(e.source[0].parameters) == 2
        ),
    ),
    _gives(
        "12h² is a block without a gate. With GLU the MLP has two matrices up and one down, of 4h²"
        " each; attention has four more, of h² each. (Many models make a gated MLP narrower, so"
        " that a block comes to 12h² again; here the width stays 4h.)",
        lambda h, glu: 12 * h * h,
    ),
    _gives(
        "That is the MLP alone, 8h², or 12h² with GLU. Attention has four matrices of h² too.",
        lambda h, glu: (12 if glu else 8) * h * h,
    ),
    _gives(
        "16h² is a block with a gate. Without GLU the MLP has one matrix up and one down, 8h².",
        lambda h, glu: 16 * h * h,
    ),
    _gives(
        "Queries, keys and values have a matrix each: 3h² and not h².",
        lambda h, glu: _BLOCK(h, glu) - 2 * h * h,
    ),
    _gives(
        "What attention puts out goes through a matrix as well, h².",
        lambda h, glu: _BLOCK(h, glu) - h * h,
    ),
    _gives(
        "8h² is the MLP alone, and that without a gate. Attention has four matrices of h² too.",
        lambda h, glu: 8 * h * h,
    ),
    _gives("That is attention alone. The MLP has 8h², or 12h² with GLU.", lambda h, glu: 4 * h * h),
    _gives(
        "The biases are counted. They are small beside the matrices, and left out here.",
        lambda h, glu: _BLOCK(h, glu) + (13 if glu else 9) * h,
    ),
    _gives(
        "Biases and norms are counted. They are small beside the matrices, and left out here.",
        lambda h, glu: _BLOCK(h, glu) + (17 if glu else 13) * h,
    ),
    _gives(
        "A matrix has h rows of h numbers: h², not h.",
        lambda h, glu: (16 if glu else 12) * h,
    ),
    times("That is twice the count, as if these were bytes. Elements are asked for.", _BLOCK, 2),
    times(
        "That is four times the count, as if these were bytes. Elements are asked for.", _BLOCK, 4
    ),
)


def _model(
    glu: Callable[[bool], bool] = bool,
    rows: Callable[[int, bool, int], int] = lambda v, tied, p: v * (2 - tied) + p,
    layers: Callable[[int], int] = int,
) -> Callable[..., int]:
    """The model's size with another idea of one of its parts."""

    def formula(h: int, n: int, v: int, g: bool, tied: bool, p: int | None) -> int:
        return layers(n) * _BLOCK(h, glu(g)) + rows(v, tied, p or 0) * h

    return formula


MODEL = (
    _rounded(sizes.model_params),
    Mistake(
        "max_positions may be left out: it is 0 then. Write max_positions=0 in the first line.",
        when=lambda e: e.says("missing 1 required positional argument: 'max_positions'"),
    ),
    Mistake(
        "layers, vocab and max_positions may be 0: there is nothing to divide by.",
        when=lambda e: e.says("ZeroDivisionError"),
    ),
    _gives("The blocks are missing.", _model(layers=lambda n: 0)),
    _gives("That is one block. There are `layers` of them.", _model(layers=lambda n: 1)),
    _gives(
        "A head that is not tied has a matrix of its own, vocab · hidden once more. Tied means that"
        " there is one matrix for both.",
        _model(rows=lambda v, tied, p: v + p),
    ),
    _gives("The embedding is missing: vocab rows of hidden numbers.", _model(
        rows=lambda v, tied, p: v * (1 - tied) + p,
    )),
    _gives("There are only blocks here. The embedding is missing, and whatever else has rows of"
           " hidden numbers.", _model(rows=lambda v, tied, p: 0)),
    _gives(
        "A tied head uses the embedding's matrix. That one is counted once.",
        _model(rows=lambda v, tied, p: 2 * v + p),
    ),
    _gives(
        "It is the other way round: tied, there is one matrix for both, and it is counted once;"
        " a head of its own is a second one.",
        _model(rows=lambda v, tied, p: v * (1 + tied) + p),
    ),
    _gives(
        "Learned positions are missing: max_positions rows of hidden numbers.",
        _model(rows=lambda v, tied, p: v * (2 - tied)),
    ),
    _gives(
        "A learned position is a row of hidden numbers, not one number.",
        lambda h, n, v, g, tied, p: sizes.model_params(h, n, v, g, tied) + (p or 0),
    ),
    _gives("Your blocks count 12h² with and without a gate: a gated block has 16h².",
           _model(glu=lambda g: False)),
    _gives("Your blocks count 16h² with and without a gate: a block without a gate has 12h².",
           _model(glu=lambda g: True)),
    _gives(
        "Embedding and head are there once, and not in every layer.",
        lambda h, n, v, g, tied, p: n * sizes.model_params(h, 1, v, g, tied, p or 0),
    ),
    _gives(
        "An entry of the vocabulary is a row of hidden numbers, not a matrix of hidden².",
        lambda h, n, v, g, tied, p: (
            n * _BLOCK(h, g) + sizes.model_params(h, 0, v, g, tied, p or 0) * h
        ),
    ),
)  # fmt: skip

_STATE_HINT = "Add up: weights 2, gradients 2, and Adam's three numbers in float32."


def _bytes(hint: str, each: float) -> Mistake:
    return _gives(hint, lambda p: each * p)


STATE = (
    _rounded(sizes.training_state_bytes),
    _bytes("These are the weights alone. " + _STATE_HINT, 2),
    _bytes("These are weights and gradients. The optimizer keeps three numbers more.", 4),
    Mistake(
        "Weights and gradients are there, and two of Adam's numbers. The optimizer keeps a third:"
        " its exact copy of the weight in float32, 4 bytes more.",
        gives=wrong(lambda p: 12 * p),
        when=lambda e: e.written(r"\b2 \+ 2 \+ 4 \+ 4\b"),
    ),
    _bytes(
        "12 bytes are the optimizer alone, without weight and gradient; or all but the exact copy"
        " of the weight in float32, which the optimizer keeps beside momentum and variance.",
        12,
    ),
    _bytes(
        "10 bytes are five numbers of 2 bytes. Adam's three numbers are float32, 4 bytes each.",
        10,
    ),
    _bytes(
        "8 bytes are too few, as if some of the five numbers were left out, or numbers of two bytes"
        " were counted and not bytes. " + _STATE_HINT,
        8,
    ),
    _bytes("You count numbers: there are five of them, of two or four bytes.", 5),
    _bytes(
        "20 bytes are 4 bytes in place of 2, twice: weights and gradients are bfloat16 here, and"
        " only the optimizer's three numbers are float32.",
        20,
    ),
    _bytes(
        "18 bytes are 2 too many, as if one of the two were float32. Gradients are bfloat16 here,"
        " 2 bytes, as the weights are.",
        18,
    ),
    _bytes(
        "One thing of 2 bytes is missing. " + _STATE_HINT,
        14,
    ),
    _bytes("These are bits, 8 times as many. Bytes are asked for.", 128),
    _gives("These are gigabytes. Bytes are asked for.", lambda p: 16 * p / 1e9),
)

FLOPS = (
    _rounded(sizes.step_flops),
    Mistake(
        "tokens and params may be 0: there is nothing to divide by.",
        when=lambda e: e.says("ZeroDivisionError"),
    ),
    _gives(
        "That is the forward pass. Backward takes twice as many, and is to be added.",
        lambda t, p: 2 * t * p,
    ),
    _gives(
        "That is the backward pass alone, or forward twice. Backward makes two gradients, that of"
        " the input and that of the weight: twice the work of forward, and forward comes on top.",
        lambda t, p: 4 * t * p,
    ),
    _gives(
        "You count a multiplication and its addition as one. They are two operations.",
        lambda t, p: 3 * t * p,
    ),
    _gives(
        "That is one operation for each token and parameter. Forward there are two, backward four.",
        lambda t, p: t * p,
    ),
    _gives(
        "That is forward twice, as if activations were recomputed. Nothing is recomputed here.",
        lambda t, p: 8 * t * p,
    ),
    _gives("That is one token. All tokens go through all parameters.", lambda t, p: 6 * p),
    _gives("Tokens and parameters are multiplied, not added.", lambda t, p: 6 * (t + p)),
)
