"""Which kinds of inputs the cases of each exercise have, on which programs go wrong in one way.

A cell of the table is *drawn*, which is read off the cases themselves, or *cannot occur*, for a
reason that stands here.  So a new exercise draws the inputs that it can take, or says why not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import torch

from grader.course.chapters import discover
from grader.exercise.cases import OPS, Case
from grader.exercise.compare import compare

CATALOGUE = discover()


def parts(value: Any) -> Iterator[Any]:
    """Yield the tensors and numbers in a value."""
    if isinstance(value, Mapping):
        yield from parts(list(value.values()))
    elif isinstance(value, (list, tuple, set)):
        for one in value:
            yield from parts(one)
    else:
        yield value


@cache
def cases(name: str) -> list[Case]:
    exercise = CATALOGUE[name]
    sizes = [n for n in exercise.world_sizes if n <= 4] or exercise.world_sizes[:1]
    return [case for n in sizes for case in exercise.cases(1, n)]


def floats(case: Case) -> list[float]:
    """Return all numbers with a decimal point among a case's arguments."""
    numbers = [x for t in tensors(case) if t.is_floating_point() for x in t.flatten().tolist()]
    return numbers + [x for x in parts(case.columns) if isinstance(x, float)]


def tensors(case: Case) -> list[torch.Tensor]:
    return [one for one in parts(case.columns) if isinstance(one, torch.Tensor)]


def not_finite(case: Case) -> bool:
    """Infinities and NaNs: multiplied by 0 they stay, and a NaN is not what is missing."""
    return any(map(math.isinf, floats(case))) and any(map(math.isnan, floats(case)))


def signed_zeros(case: Case) -> bool:
    """Zeros of both signs, which are equal numbers."""
    return {math.copysign(1, x) for x in floats(case) if x == 0} == {1, -1}


def empty(case: Case) -> bool:
    """No elements."""
    lists = [one for one in case.columns.values() if isinstance(one, (list, dict))]
    nothing = any(not one for column in lists for one in (column, *column) if one in ([], {}, ()))
    return nothing or any(not t.numel() for t in tensors(case))


def double(case: Case) -> bool:
    """Numbers that float32 does not hold."""
    wide = [x for t in tensors(case) if t.dtype == torch.float64 for x in t.flatten().tolist()]
    numbers = wide + [x for x in parts(case.columns) if isinstance(x, float)]
    return any(math.isfinite(x) and torch.tensor(x).item() != x for x in numbers)


def extreme(case: Case) -> bool:
    """Numbers far from 0 on one side, beside which a start at 0 or 10⁹ is a minimum or maximum."""
    if case.columns.get("op") in (OPS["MIN"], OPS["MAX"]):
        of_ranks = case.columns.get("x") or case.columns["chunks"][0]
        far = torch.stack([t.flatten() for t in of_ranks]).double()
    elif case.columns.get("reduce") in ("amin", "amax"):
        far = torch.cat([case.input, case.src])[:, None].double()
    else:
        return False
    return bool(((far > 1e9).all(0) | (far < -1e9).all(0)).any())


#: Ways to lose digits of a result.
ROUNDED: dict[str, Callable[[float], float]] = {
    "up": math.ceil,
    "down": math.floor,
    "to the nearest": round,
    "to four decimals": lambda x: round(x, 4),
    "to four digits": lambda x: float(f"{x:.4g}"),
    "to single precision": lambda x: torch.tensor(x).item(),
}


def with_numbers(value: Any, change: Callable[[float], float]) -> Any:
    """Return a result with each of its numbers changed."""
    if isinstance(value, float):
        return change(value) if math.isfinite(value) else value
    if isinstance(value, Mapping):
        return {key: with_numbers(one, change) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_numbers(one, change) for one in value]
    return value


def tells(name: str, change: Callable[[float], float]) -> bool:
    """Return whether a case of an exercise is wrong where its right numbers are changed."""
    values = CATALOGUE[name].values
    for case in cases(name):
        scales = values.magnitude(case) if values.magnitude else [None] * case.n
        terms = values.reduced(case) if values.reduced else 0
        for right, scale in zip(values.expected(case), scales, strict=True):
            if compare(right, with_numbers(right, change), terms, scale, "", values.relative):
                return True
    return False


#: The kinds of inputs.
KINDS = {one.__name__: one for one in (not_finite, signed_zeros, empty, double, extreme)}

_WHOLE = """who_am_i neighbours barrier ring_schedule stuck_ranks stuck_ranks_any_all assign_buckets
    transformer_block_params model_params training_state_bytes step_flops pick_backend device_for
    double_trees node_groups first_divergence gpipe_order one_f_one_b_order pipeline_bubble
    zigzag_split build_mesh pair_group hottest_ops"""
_FORMULAS = """ring_all_reduce_seconds tree_all_reduce_seconds crossover_bytes fit_alpha_beta
    algorithm_bandwidth bus_bandwidth dp_overlap_ratio zero3_overlap_ratio tp_overlap_ratio
    pp_overlap_ratio best_pieces time_collective time_kernel"""
_MODELS = "BucketedDDP ShardedAdamW FullySharded run_pipeline DiLoCo train"
_PRODUCTS = """row_parallel column_parallel parallel_mlp gather_matmul ring_attention
    ulysses_attention expert_parallel vocab_parallel_cross_entropy route"""

#: Why a kind of input cannot occur, and in which exercises.
REASONS: dict[str, dict[str, str]] = {
    "not_finite": {
        "no numbers with a decimal point are taken": _WHOLE,
        "sizes and times are finite": _FORMULAS,
        "a model that is trained has finite numbers": _MODELS + " train_uneven",
        "a product with 0 makes a NaN of an infinity, and zeros may pad": _PRODUCTS,
        "a matrix of zeros and ones is a right way to add rows": "combine_experts",
        "gloo's maximum may lose a NaN": "unblock_order",
        "a mean of single numbers has no place beside it": "unblock_branch",
        "a mean that is NaN is neither better nor worse": "should_stop",
        "the error that is allowed is a part of the largest number": "quantized_all_reduce",
        "the magnitude of a NaN is not the largest": "TopKFeedback",
        "what goes through the store may go as text": "sum_of_survivors",
    },
    "signed_zeros": {
        "no numbers with a decimal point are taken": _WHOLE,
        "a formula takes a zero of either sign for zero": _FORMULAS + " should_stop mean_metrics",
        "which of two zeros is the larger one is open": "unblock_order scatter_reduce_1d",
        "the sign of a zero gets lost in a sum": _MODELS
        + " "
        + _PRODUCTS
        + """ train_uneven
            segment_mean combine_experts unblock_branch sum_of_survivors TopKFeedback""",
    },
    "empty": {
        "no list and no tensor is taken": """who_am_i neighbours barrier ring_schedule
            algorithm_bandwidth best_pieces build_mesh bus_bandwidth crossover_bytes device_for
            double_trees dp_overlap_ratio gpipe_order model_params node_groups one_f_one_b_order
            pick_backend pipeline_bubble pp_overlap_ratio ring_all_reduce_seconds should_stop
            step_flops tp_overlap_ratio training_state_bytes transformer_block_params
            tree_all_reduce_seconds zero3_overlap_ratio zigzag_split""",
        "a model has parameters, and a batch has rows": """DiLoCo average_gradients
            run_pipeline sync_parameters train""",
        "a softmax over nothing is not defined": "ring_attention ulysses_attention",
        "two numbers cannot be fitted to nothing": "fit_alpha_beta",
        "a loss is one number": "unblock_branch",
        "a gradient without elements has no largest k": "TopKFeedback",
    },
    "double": {
        "no numbers with a decimal point are taken": _WHOLE,
        "seconds are exact in float32, in which they may be told": "time_collective time_kernel",
        "the losses count to 1e-4": "train",
        "the tensors are float32 by contract": "quantized_all_reduce",
    },
    "extreme": {"op is a word": "bus_bandwidth"},
}


def takes(name: str, kind: str) -> bool:
    """Return whether an exercise has to say something: of extremes only if it asks for one."""
    return kind != "extreme" or not {"op", "reduce"}.isdisjoint(CATALOGUE[name].parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_each_exercise_draws_a_kind_of_input_or_cannot_take_it(kind):
    drawn = {name for name in CATALOGUE if any(map(KINDS[kind], cases(name)))}
    cannot = [name for names in REASONS[kind].values() for name in names.split()]
    open_cells = [name for name in CATALOGUE if takes(name, kind) and name not in {*drawn, *cannot}]
    assert not open_cells, f"{KINDS[kind].__doc__}  Draw a case with it, or say why it cannot occur"
    assert not drawn.intersection(cannot), "these are drawn, so the reason is none"
    assert len(cannot) == len(set(cannot))
    assert set(cannot) <= set(CATALOGUE)


#: Exercises in which digits may get lost: how, and why.
FEW_DIGITS = {
    "time_collective": ("to single precision", "the means are exact in it"),
    "time_kernel": ("to single precision", "the medians are exact in it"),
    "fit_alpha_beta": ("to single precision", "a fit takes differences of large sums"),
    "mean_metrics": ("to single precision", "a metric is a measurement"),
    "run_pipeline": ("to single precision, to four decimals", "a loss of a model in float32"),
    "train": ("to single precision, to four decimals", "the contract asks for 1e-4"),
}

#: The exercises that ask for numbers with a decimal point.
NUMBERS = [
    name
    for name, one in CATALOGUE.items()
    if any(isinstance(x, float) for c in cases(name) for x in parts(list(one.values.expected(c))))
]


@pytest.mark.parametrize("name", NUMBERS)
def test_a_result_that_has_lost_digits_is_wrong(name, subtests):
    for how, change in ROUNDED.items():
        with subtests.test(how):
            assert tells(name, change) != (how in FEW_DIGITS.get(name, ("", ""))[0])
