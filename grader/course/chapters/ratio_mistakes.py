"""Mistakes of chapter 16: what people write instead of a ratio, and the hint that fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from grader.course import sizes
from grader.course.chapters.cost_mistakes import wrong
from grader.course.chapters.size_mistakes import times
from grader.course.exercise import Evidence, Mistake

__all__ = ["DP", "PP", "TP", "ZERO3"]


def _asks_for(hint: str, names: str) -> Mistake:
    """The header has a parameter of such a name, which is not passed."""

    def when(e: Evidence) -> bool:
        header = e.source[0].parameters
        return e.says("required positional argument") and any(
            re.fullmatch(names, one) for one in header
        )

    return Mistake(hint, when=when)


_TOKENS = _asks_for(
    "The number of tokens is no argument, because it cancels: twice as many tokens are twice the"
    " bytes and twice the operations. Take it out of the header.",
    r"(n|num)?_?tokens|seq(_?len)?|(micro_?)?batch(_size)?",
)

_PARAMETERS = _asks_for(
    "The number of parameters is no argument, because it cancels: a model twice as large sends"
    " twice the bytes and computes twice as long. Take it out of the header.",
    r"(n|num)?_?(model_|block_)?(params?|parameters|weights)",
)

_ALONE = Mistake(
    "A rank that is alone sends nothing, so the ratio is 0 there: do not divide by what is 0 for"
    " one rank.",
    when=lambda e: (
        e.says("ZeroDivisionError") and 1 in (e.case.columns.get("dp"), e.case.columns.get("tp"))
    ),
)


def _ratio(right: Callable[..., float], *own: Mistake) -> tuple[Mistake, ...]:
    """What goes wrong with every ratio, after what goes wrong with this one."""

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
            "You divide by bytes_per_element. Longer elements are more bytes: multiply.",
            right,
            lambda *a: 1 / a[-1] ** 2,
        ),
        times("These are bits. peak_bandwidth is in bytes: do not multiply by 8.", right, 8),
        Mistake(
            "It is upside down: communication time divided by computation time.",
            gives=wrong(upside_down),
        ),
        times(
            "F and B have changed places. Time is bytes / B and operations / F, so their ratio"
            " goes with F / B.",
            right,
            lambda *a: (a[-2] / a[-3]) ** 2,
        ),
    )  # fmt: skip


DP = _ratio(
    sizes.dp_overlap_ratio,
    _PARAMETERS,
    Mistake(
        "You divide tokens by dp. They are those of one replica already.",
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
        " 1/DP of the gradients? Or do you divide tokens by dp? They are those of one replica"
        " already.",
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
        "Each token is computed with, so more tokens hide more: divide by them.",
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
        "Every rank has 1/DP of the weights already. It is sent (DP − 1)/DP of them.",
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
        "It is three times as large as it should be, as if all three communications stood against"
        " the forward pass. Forward there is one, and 2 operations; backward there are two, and 4"
        " operations.",
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
        "Every device has its own part already: TP − 1 parts come, and not TP.",
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
        "It is a 16th of what it should be, as it would be beside a whole block, 16h². Asked for is"
        " one matrix of h².",
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
        "The stage has layers_in_next_stage blocks, and all of them are computed meanwhile:"
        " divide by their number.",
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
