"""Chapter 16: how large it is, how long it takes, what can be hidden."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course import sizes
from grader.course.cases import Case, Draw, Kind
from grader.course.chapters.ch13_cost_models import wrong
from grader.course.exercise import Evidence, Exercise, Mistake, Values

# Mistakes in counts, and their hints. ------------------------------------------------


def called(c: Case) -> tuple[Any, ...]:
    """Return the arguments of a case, without those that the call leaves out."""
    return tuple(value for value in c.arguments(0) if value is not None)


def _gives(hint: str, *formulas: Callable[..., Any]) -> Mistake:
    """Make a mistake of one wrong formula, or of several."""
    return Mistake(hint, gives=tuple(map(wrong, formulas)))


def times(hint: str, right: Callable[..., Any], factor: float | Callable[..., Any]) -> Mistake:
    """Make a mistake of the right formula and a factor that is missing or too many."""

    def formula(*arguments: Any) -> Any:
        return right(*arguments) * (factor(*arguments) if callable(factor) else factor)

    return _gives(hint, formula)


def _rounded(right: Callable[..., int]) -> Mistake:
    """Make a mistake of a count that went through a float and changed."""

    def nearly(e: Evidence) -> bool:
        if e.diagnosis is not Diagnosis.WRONG_VALUE or type(e.actual[0]) is not int:
            return False
        count = right(*called(e.case))
        return abs(e.actual[0] - count) <= count / 10**12

    return Mistake(
        "Only the last digits are wrong: a float holds 16 digits, and the count has more. Stay"
        " with whole numbers all the way: // instead of /, 16 instead of 16.0.",
        when=nearly,
    )


_BLOCK = sizes.transformer_block_params

BLOCK = (
    _rounded(_BLOCK),
    Mistake(
        "glu stands after a bare * in your header, so it can be passed by name only; here it is"
        " passed by position. Leave out the *.",
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
        "The output of attention goes through a matrix as well, h².",
        lambda h, glu: _BLOCK(h, glu) - h * h,
    ),
    _gives(
        "8h² is the MLP alone, and without a gate. Attention has four matrices of h² too.",
        lambda h, glu: 8 * h * h,
    ),
    _gives("That is attention alone. The MLP has 8h², or 12h² with GLU.", lambda h, glu: 4 * h * h),
    _gives(
        "The biases are counted. They are small beside the matrices and are left out here.",
        lambda h, glu: _BLOCK(h, glu) + (13 if glu else 9) * h,
    ),
    _gives(
        "Biases and norms are counted. They are small beside the matrices and are left out here.",
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
    """Return the model's size with other ideas of some of its parts."""

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
    _gives("There are only blocks here. The embedding is missing, and everything else that has"
           " rows of hidden numbers.", _model(rows=lambda v, tied, p: 0)),
    _gives(
        "A tied head uses the embedding's matrix, which is counted once.",
        _model(rows=lambda v, tied, p: 2 * v + p),
    ),
    _gives(
        "It is the other way round. If the head is tied, one matrix serves both and is counted"
        " once; a head of its own is a second matrix.",
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
        "Embedding and head are there once in the model, not in every layer.",
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
    _bytes("These are weights and gradients. The optimizer keeps three more numbers.", 4),
    Mistake(
        "Weights and gradients are there, and two of Adam's numbers. The optimizer keeps a third:"
        " its exact copy of the weight in float32, 4 bytes more.",
        gives=wrong(lambda p: 12 * p),
        when=lambda e: e.written(r"\b2 \+ 2 \+ 4 \+ 4\b"),
    ),
    _bytes(
        "12 bytes are the optimizer alone, without weight and gradient; or they are everything but"
        " the exact copy of the weight in float32, which the optimizer keeps beside momentum and"
        " variance.",
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
        "20 bytes have 4 bytes in place of 2, twice: weights and gradients are bfloat16 here;"
        " only the optimizer's three numbers are float32.",
        20,
    ),
    _bytes(
        "18 bytes are 2 too many, as if the gradients were float32. Gradients are bfloat16 here,"
        " 2 bytes, like the weights.",
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
        "That is the forward pass alone. Backward takes twice as many operations: add them.",
        lambda t, p: 2 * t * p,
    ),
    _gives(
        "That is the backward pass alone, or forward twice. Backward computes two gradients, that"
        " of the input and that of the weight: twice the work of forward, which comes on top.",
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
    _gives("That is one token. Every token goes through all parameters.", lambda t, p: 6 * p),
    _gives("Tokens and parameters are multiplied, not added.", lambda t, p: 6 * (t + p)),
)


# Mistakes in ratios, and their hints. ------------------------------------------------


def _asks_for(hint: str, names: str) -> Mistake:
    """Make a mistake of a header with a parameter of such a name, which is not passed."""

    def when(e: Evidence) -> bool:
        header = e.source[0].parameters
        return e.says("required positional argument") and any(
            re.fullmatch(names, one) for one in header
        )

    return Mistake(hint, when=when)


_TOKENS = _asks_for(
    "The number of tokens is not an argument, because it cancels: twice as many tokens mean twice"
    " the bytes and twice the operations. Take it out of the header.",
    r"(n|num)?_?tokens|seq(_?len)?|(micro_?)?batch(_size)?",
)

_PARAMETERS = _asks_for(
    "The number of parameters is not an argument, because it cancels: a model twice as large sends"
    " twice the bytes and computes twice as long. Take it out of the header.",
    r"(n|num)?_?(model_|block_)?(params?|parameters|weights)",
)

_ALONE = Mistake(
    "A rank that is alone sends nothing, so the ratio is 0: do not divide by something that is 0"
    " for one rank.",
    when=lambda e: (
        e.says("ZeroDivisionError") and 1 in (e.case.columns.get("dp"), e.case.columns.get("tp"))
    ),
)


def _ratio(right: Callable[..., float], *own: Mistake) -> tuple[Mistake, ...]:
    """Return these mistakes of one ratio, followed by those of every ratio."""

    def upside_down(*arguments: Any) -> float:
        return 1 / right(*arguments)

    return (
        *own,
        _ALONE,
        times(
            "You count elements. peak_bandwidth is in bytes: multiply by bytes_per_element.",
            right,
            lambda *a: 1 / a[-1],
        ),
        times(
            "You divide by bytes_per_element. Longer elements mean more bytes: multiply.",
            right,
            lambda *a: 1 / a[-1] ** 2,
        ),
        times("These are bits. peak_bandwidth is in bytes: do not multiply by 8.", right, 8),
        Mistake(
            "It is upside down: communication time divided by computation time.",
            gives=wrong(upside_down),
        ),
        times(
            "F and B are swapped. Time is bytes / B and operations / F, so their ratio"
            " goes with F / B.",
            right,
            lambda *a: (a[-2] / a[-3]) ** 2,
        ),
    )  # fmt: skip


DP = _ratio(
    sizes.dp_overlap_ratio,
    _PARAMETERS,
    Mistake(
        "You divide tokens by dp. They are already those of one replica.",
        gives=wrong(lambda t, n, *rest: sizes.dp_overlap_ratio(t, n, *rest) * n),
        when=lambda e: e.written(r"tokens /+=? dp"),
    ),
    times(
        "A ring sends (DP − 1)/DP of the gradients, twice. With one rank there is nothing to send.",
        sizes.dp_overlap_ratio,
        lambda t, n, *_: n / (n - 1),
    ),
    times(
        "It is DP times too large. Do you have DP − 1 where (DP − 1)/DP belongs, since a chunk is"
        " 1/DP of the gradients? Or do you divide tokens by dp? They are already those of"
        " one replica.",
        sizes.dp_overlap_ratio,
        lambda t, n, *_: n,
    ),
    times(
        "It is half as large as it should be, as if the all-reduce were one phase. It has two: a"
        " reduce-scatter and an all-gather.",
        sizes.dp_overlap_ratio,
        0.5,
    ),
    times(
        "It is twice as large as it should be, as it would be beside the forward pass with its 2"
        " operations. Gradients appear only in the backward pass, which has 4.",
        sizes.dp_overlap_ratio,
        2,
    ),
    times(
        "It is 2/3 of what it should be, as it would be beside the whole step with its 6"
        " operations. Gradients appear only in the backward pass, which has 4.",
        sizes.dp_overlap_ratio,
        2 / 3,
    ),
    times(
        "tokens are those of one replica. Do not multiply by dp.",
        sizes.dp_overlap_ratio,
        lambda t, n, *_: 1 / n,
    ),
    times(
        "Every token adds to the computation, so more tokens hide more: divide by them.",
        sizes.dp_overlap_ratio,
        lambda t, *_: t,
    ),
)

ZERO3 = _ratio(
    sizes.zero3_overlap_ratio,
    _PARAMETERS,
    times(
        "You divide by seq alone. The tokens of a micro-batch are seq · micro_batch.",
        sizes.zero3_overlap_ratio,
        lambda s, m, *_: m,
    ),
    times(
        "You divide by micro_batch alone. The tokens of a micro-batch are seq · micro_batch.",
        sizes.zero3_overlap_ratio,
        lambda s, *_: s,
    ),
    times(
        "Every rank has 1/DP of the weights already. Only the other (DP − 1)/DP are sent.",
        sizes.zero3_overlap_ratio,
        lambda s, m, n, *_: n / (n - 1),
    ),
    times(
        "You have DP − 1 where (DP − 1)/DP belongs: a shard is 1/DP of the weights.",
        sizes.zero3_overlap_ratio,
        lambda s, m, n, *_: n,
    ),
    times(
        "It is twice as large as it should be. Do you send as much as an all-reduce, or as the"
        " backward pass? Forward it is one all-gather. Or do you count a multiplication and its"
        " addition as one operation? They are two.",
        sizes.zero3_overlap_ratio,
        2,
    ),
    times(
        "It is three times as large as it should be, as if all three communications"
        " had to be hidden behind the forward pass. Forward there is one, and 2 operations;"
        " backward there are two, and 4 operations.",
        sizes.zero3_overlap_ratio,
        3,
    ),
    times(
        "It is half as large as it should be, as if one all-gather stood against the backward pass"
        " with its 4 operations. Forward there are 2.",
        sizes.zero3_overlap_ratio,
        0.5,
    ),
    times(
        "It is a third of what it should be, as if one all-gather stood against the whole step with"
        " its 6 operations. Forward there are 2.",
        sizes.zero3_overlap_ratio,
        1 / 3,
    ),
)

TP = _ratio(
    sizes.tp_overlap_ratio,
    _TOKENS,
    times(
        "You have (TP − 1)/TP where TP − 1 belongs. Each device has 1/TP of the matrix, so it"
        " computes 1/TP as long: that cancels the TP below.",
        sizes.tp_overlap_ratio,
        lambda h, n, *_: 1 / n,
    ),
    times(
        "Every device already has its own part: TP − 1 parts come, and not TP.",
        sizes.tp_overlap_ratio,
        lambda h, n, *_: n / (n - 1),
    ),
    times(
        "One h cancels: the activations of a token are h numbers, the matrix is h².",
        sizes.tp_overlap_ratio,
        lambda h, *_: 1 / h,
    ),
    times(
        "The h is missing: a token sends h numbers, and is computed with h². One h stays below.",
        sizes.tp_overlap_ratio,
        lambda h, *_: h,
    ),
    times(
        "It is twice as large as it should be. Do you send twice? It is one all-gather, or one"
        " reduce-scatter, and no all-reduce. Or do you count a multiplication and its addition as"
        " one operation? They are two.",
        sizes.tp_overlap_ratio,
        2,
    ),
    times(
        "It is half as large as it should be, as it would be beside the backward pass with its 4"
        " operations. Forward there are 2.",
        sizes.tp_overlap_ratio,
        0.5,
    ),
    times(
        "It is a 16th of what it should be, as it would be beside a whole block, 16h². The question"
        " is about one matrix of h².",
        sizes.tp_overlap_ratio,
        1 / 16,
    ),
)

PP = _ratio(
    sizes.pp_overlap_ratio,
    _TOKENS,
    times(
        "It is 4/3 of what it should be, as it would be with blocks of 12h². The block here is"
        " gated, 16h²: 32h² operations for a token.",
        sizes.pp_overlap_ratio,
        32 / 24,
    ),
    times(
        "It is twice as large as it should be, as if a multiplication and its addition were one"
        " operation. They are two operations: 32h² for a token and a block.",
        sizes.pp_overlap_ratio,
        2,
    ),
    times(
        "It is half as large as it should be, as it would be beside the backward pass with its 64h²"
        " for a token and a block. Activations go forward, beside 32h².",
        sizes.pp_overlap_ratio,
        0.5,
    ),
    times(
        "It is a third of what it should be, as it would be beside the whole step with its 96h²."
        " Activations go forward, beside 32h² operations for a token and a block.",
        sizes.pp_overlap_ratio,
        1 / 3,
    ),
    times(
        "The stage has layers_in_next_stage blocks, and all of them compute meanwhile: divide by"
        " their number.",
        sizes.pp_overlap_ratio,
        lambda h, n, *_: n,
    ),
    times(
        "More layers hide more: divide by their number.",
        sizes.pp_overlap_ratio,
        lambda h, n, *_: n * n,
    ),
    times(
        "One h cancels: the activations of a token are h numbers, a block is 16h².",
        sizes.pp_overlap_ratio,
        lambda h, *_: 1 / h,
    ),
    times(
        "The h is missing: a token sends h numbers, and is computed with 16h². One h stays below.",
        sizes.pp_overlap_ratio,
        lambda h, *_: h,
    ),
)

#: Relative error for numbers of a formula, which may be evaluated in any order.
_FORMULA = 1e-9

_COUNT_ADVICE = {
    Diagnosis.WRONG_TYPE: "A count is a whole number, an int. In Python / makes a float even of two"
    " whole numbers, and so does 1e9: stay with *, + and //.",
    Diagnosis.FORBIDDEN_CALL: "Nothing is sent here: the number follows from the arguments.",
}

_RATIO_ADVICE = {
    Diagnosis.WRONG_TYPE: "Return one number: the seconds of the communication divided by the"
    " seconds of the computation.",
    Diagnosis.FORBIDDEN_CALL: "Nothing is sent or measured: the ratio follows from the arguments.",
}


def _near(draw: Draw, *numbers: int) -> list[int]:
    """Draw whole numbers near these, so that no table of answers passes; 0 and 1 stay as they are.

    The others are odd, so that floats cannot hold products of large ones.
    """
    parts = draw.factors(Kind(torch.float64, (len(numbers),))).abs().tolist()
    pairs = zip(numbers, parts, strict=True)
    return [x * int(part * 2**32) >> 32 | 1 if x else 0 for x, part in pairs]


# Counts. --------------------------------------------------------------------------


def _blocks(draw: Draw) -> Iterator[Case]:
    for name, hidden in (("", 4096), (", narrow", 12), (", one wide", 1), (", huge", 10**9)):
        for glu in (True, False):
            (h,) = _near(draw, hidden)
            yield draw.case(f"{'with' if glu else 'without'} GLU{name}", hidden=h, glu=glu)


transformer_block_params = Exercise(
    signature="transformer_block_params(hidden: int, glu: bool) -> int",
    summary="parameters of a transformer block, matrices only",
    world_sizes=(1,),
    inputs=_blocks,
    values=Values(lambda c: [sizes.transformer_block_params(c.hidden, c.glu)]),
    mistakes=BLOCK,
)


#: hidden, layers, vocab, GLU, tied head, positions; ``None``: the argument is left out.
#: The hint depends on the first cases: in them every term counts, each by another amount.
_MODELS: tuple[tuple[str, int, int, int, bool, bool, int | None], ...] = (
    ("not gated, tied head, learned positions", 768, 12, 50_000, False, True, 1000),
    ("gated, head of its own, learned positions", 512, 6, 40_000, True, False, 700),
    ("gated, head of its own, positions left out", 4096, 32, 32_000, True, False, None),
    ("gated, tied head, positions left out", 2048, 16, 128_000, True, True, None),
    ("not gated, head of its own, no positions", 900, 9, 30_000, False, False, 0),
    ("no layers", 64, 0, 1000, False, True, 50),
    ("no vocabulary", 64, 3, 0, True, False, 0),
    ("one of everything", 1, 1, 1, False, False, 1),
    ("more parameters than a float can count", 10**8, 2000, 10**7, True, False, 10**7),
)


def _models(draw: Draw) -> Iterator[Case]:
    for name, hidden, layers, vocab, glu, tied, positions in _MODELS:
        h, n, v, p = _near(draw, hidden, layers, vocab, positions or 0)
        yield draw.case(
            name, hidden=h, layers=n, vocab=v, glu=glu, tied_head=tied,
            max_positions=None if positions is None else p,
        )  # fmt: skip


def _without_none(answer: Callable[..., Any], *arguments: Any) -> Any:
    """Call the answer without arguments that are ``None``, so that defaults are used."""
    return answer(*(argument for argument in arguments if argument is not None))


model_params = Exercise(
    signature="model_params(hidden: int, layers: int, vocab: int, glu: bool, tied_head: bool,"
    " max_positions: int = 0) -> int",
    summary="parameters of a model: blocks, embedding, head, learned positions",
    world_sizes=(1,),
    inputs=_models,
    adapter=_without_none,
    values=Values(lambda c: [sizes.model_params(*called(c))]),
    mistakes=MODEL,
)


def _states(draw: Draw) -> Iterator[Case]:
    for name, params in (
        ("a small model", 10**6),
        ("a large model", 7 * 10**9),
        ("one parameter", 1),
        ("no parameter", 0),
        ("more parameters than a float can count", 10**17),
    ):
        (p,) = _near(draw, params)
        yield draw.case(name, params=p)


training_state_bytes = Exercise(
    signature="training_state_bytes(params: int) -> int",
    summary="bytes of weights, gradients and Adam's state in mixed precision",
    world_sizes=(1,),
    inputs=_states,
    values=Values(lambda c: [sizes.training_state_bytes(c.params)]),
    mistakes=STATE,
)


def _steps(draw: Draw) -> Iterator[Case]:
    for name, tokens, params in (
        ("a step of a small model", 8192, 10**8),
        ("all of a large training", 15 * 10**12, 4 * 10**11),
        ("one token, one parameter", 1, 1),
        ("no token", 0, 10**6),
        ("no parameter", 10**3, 0),
    ):
        t, p = _near(draw, tokens, params)
        yield draw.case(name, tokens=t, params=p)


step_flops = Exercise(
    signature="step_flops(tokens: int, params: int) -> int",
    summary="operations of a training step, forward and backward",
    world_sizes=(1,),
    inputs=_steps,
    values=Values(lambda c: [sizes.step_flops(c.tokens, c.params)]),
    mistakes=FLOPS,
)

# Ratios. --------------------------------------------------------------------------

#: A device and its link: operations per second, bytes per second, bytes of an element.
#: With eight bytes first, no two mistakes give the same.
_DEVICES = (
    ("", 9.9e14, 4.5e11, 8),
    (", bfloat16", 3.1e14, 2.5e10, 2),
    (", one byte", 2e15, 1e9, 1),
)


def _ratios(draw: Draw, *rows: tuple[str, dict[str, int]]) -> Iterator[Case]:
    """Draw each row on each device; numbers above 100 are varied a little, degrees are not."""
    for device, flops, bandwidth, e in _DEVICES:
        for name, columns in rows:
            x, y, *parts = draw.factors(Kind(torch.float64, (2 + len(columns),))).abs().tolist()
            varied = {
                key: round(value * part) if value > 100 else value
                for (key, value), part in zip(columns.items(), parts, strict=True)
            }
            yield draw.case(
                name + device, **varied,
                peak_flops=flops * x, peak_bandwidth=bandwidth * y, bytes_per_element=e,
            )  # fmt: skip


dp_overlap_ratio = Exercise(
    signature="dp_overlap_ratio(tokens: int, dp: int, peak_flops: float, peak_bandwidth: float,"
    " bytes_per_element: int) -> float",
    summary="all-reduce of the gradients, beside the backward pass",
    world_sizes=(1,),
    inputs=lambda draw: _ratios(
        draw,
        ("7 replicas", {"tokens": 4000, "dp": 7}),
        ("64 replicas", {"tokens": 65_000, "dp": 64}),
        ("2 replicas, a token", {"tokens": 1, "dp": 2}),
        ("alone", {"tokens": 4000, "dp": 1}),
    ),
    values=Values(lambda c: [sizes.dp_overlap_ratio(*c.arguments(0))], relative=_FORMULA),
    mistakes=DP,
)


zero3_overlap_ratio = Exercise(
    signature="zero3_overlap_ratio(seq: int, micro_batch: int, dp: int, peak_flops: float,"
    " peak_bandwidth: float, bytes_per_element: int) -> float",
    summary="all-gather of a block's weights, beside the block before",
    world_sizes=(1,),
    inputs=lambda draw: _ratios(
        draw,
        ("7 replicas", {"seq": 4000, "micro_batch": 5, "dp": 7}),
        ("64 replicas", {"seq": 8000, "micro_batch": 1, "dp": 64}),
        ("2 replicas, a token", {"seq": 1, "micro_batch": 1, "dp": 2}),
        ("alone", {"seq": 4000, "micro_batch": 3, "dp": 1}),
    ),
    values=Values(lambda c: [sizes.zero3_overlap_ratio(*c.arguments(0))], relative=_FORMULA),
    mistakes=ZERO3,
)


tp_overlap_ratio = Exercise(
    signature="tp_overlap_ratio(hidden: int, tp: int, peak_flops: float, peak_bandwidth: float,"
    " bytes_per_element: int) -> float",
    summary="all-gather or reduce-scatter of activations, beside one matrix",
    world_sizes=(1,),
    inputs=lambda draw: _ratios(
        draw,
        ("7 devices", {"hidden": 4096, "tp": 7}),
        ("64 devices", {"hidden": 16_384, "tp": 64}),
        ("2 devices", {"hidden": 1000, "tp": 2}),
        ("alone", {"hidden": 4096, "tp": 1}),
    ),
    values=Values(lambda c: [sizes.tp_overlap_ratio(*c.arguments(0))], relative=_FORMULA),
    mistakes=TP,
)


pp_overlap_ratio = Exercise(
    signature="pp_overlap_ratio(hidden: int, layers_in_next_stage: int, peak_flops: float,"
    " peak_bandwidth: float, bytes_per_element: int) -> float",
    summary="activations for the next stage, beside its blocks",
    world_sizes=(1,),
    inputs=lambda draw: _ratios(
        draw,
        ("5 layers", {"hidden": 4096, "layers_in_next_stage": 5}),
        ("one layer", {"hidden": 1000, "layers_in_next_stage": 1}),
        ("40 layers", {"hidden": 12_288, "layers_in_next_stage": 40}),
    ),
    values=Values(lambda c: [sizes.pp_overlap_ratio(*c.arguments(0))], relative=_FORMULA),
    mistakes=PP,
)
