"""Chapter 16: how large it is, how long it takes, what can be hidden."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from grader.course import sizes
from grader.exercise.cases import Case, Draw, Kind
from grader.exercise.declaration import Evidence, Exercise, Mistake, Values
from headcount.core.verdict import Diagnosis

# What the evidence of a failure proves. ------------------------------------------------


def called(c: Case) -> tuple[Any, ...]:
    """Return the arguments of a case, without those that the call leaves out."""
    return tuple(value for value in c.arguments(0) if value is not None)


def _through_a_float(right: Callable[..., int]) -> Mistake:
    """Make a mistake of a count that went through a float and changed."""

    def nearly(e: Evidence) -> bool:
        given = e.actual[0]
        count = right(*called(e.case))
        return (
            e.diagnosis is Diagnosis.WRONG_VALUE
            and type(given) is int
            and abs(given - count) <= count / 10**12
        )

    return Mistake(
        "Only the last digits are wrong: a float holds 16 digits, and the count has more. Stay"
        " with whole numbers all the way: // instead of /, 16 instead of 16.0.",
        when=nearly,
    )


def _not_called(e: Evidence) -> bool:
    """Return whether the call itself fails, before the first line."""
    return e.failure is not None and e.raised("TypeError") and e.failure.site is None


def _asks_for(hint: str, names: str) -> Mistake:
    """Make a mistake of a header with a parameter of such a name, which is not passed."""

    def when(e: Evidence) -> bool:
        own = set(e.source[0].parameters) - set(e.case.columns)
        return _not_called(e) and any(re.fullmatch(names, one) for one in own)

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
        e.raised("ZeroDivisionError") and 1 in (e.case.columns.get("dp"), e.case.columns.get("tp"))
    ),
)

#: Relative error for numbers of a formula, which may be evaluated in any order.
_FORMULA = 1e-9


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
    mistakes=(
        _through_a_float(sizes.transformer_block_params),
        Mistake(
            "There is a bare * in your header, so what stands after it can be passed by name only;"
            " here it is passed by position. Leave out the *.",
            when=lambda e: _not_called(e) and list(e.source[0].parameters) == list(e.case.columns),
        ),
    ),
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
    mistakes=(
        _through_a_float(sizes.model_params),
        Mistake(
            "layers, vocab and max_positions may be 0: there is nothing to divide by.",
            when=lambda e: e.raised("ZeroDivisionError"),
        ),
    ),
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
    mistakes=(_through_a_float(sizes.training_state_bytes),),
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
    mistakes=(
        _through_a_float(sizes.step_flops),
        Mistake(
            "tokens and params may be 0: there is nothing to divide by.",
            when=lambda e: e.raised("ZeroDivisionError"),
        ),
    ),
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
    mistakes=(_PARAMETERS, _ALONE),
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
    mistakes=(_PARAMETERS, _ALONE),
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
    mistakes=(_TOKENS, _ALONE),
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
    mistakes=(_TOKENS,),
)
