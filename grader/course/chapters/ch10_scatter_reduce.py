"""Chapter 10: an indexed reduction inside one tensor, and two uses of it."""

from collections.abc import Callable
from typing import Any

import torch

from grader.core.verdict import Diagnosis
from grader.course.chapters.indexed import magnitude, reduced, reductions
from grader.course.chapters.indexed_mistakes import MISTAKES
from grader.course.chapters.indexed_rows import (
    TWO_DTYPES,
    along_columns,
    column_sums,
    combination_sizes,
    combinations,
    combined,
    empty_segments,
    has_nan,
    is_cut,
    like,
    lost_rows,
    means,
    says,
    segment_sizes,
    segments,
    sizes_meet,
    without,
)  # fmt: skip
from grader.course.exercise import Exercise, Mistake
from grader.rank.instrumentation import differentiated, refusing, steps
from grader.rank.recorder import ForbiddenCall


def _refusing(answer: Callable[..., Any], *arguments: Any) -> Any:
    names = frozenset({"scatter_reduce", "index_reduce", "index_add", "scatter_add"})
    return refusing(names, answer, *arguments)


scatter_reduce_1d = Exercise(
    signature="scatter_reduce_1d(input: Tensor, index: Tensor, src: Tensor, reduce: str,"
    " include_self: bool) -> Tensor",
    summary="what Tensor.scatter_reduce does in one dimension, by hand",
    inputs=reductions,
    world_sizes=(1,),
    adapter=_refusing,
    expected=lambda c: [reduced(c)] * c.n,
    reduced=lambda c: len(c.index) + 3,
    magnitude=lambda c: [magnitude(c)] * c.n,
    hints=(
        "For each place of input: which numbers of src have it in index? Reduce these, together"
        " with what input has there if include_self is true.",
        "Go through index and src side by side, and combine every number into a copy of input at"
        " the place that index names. With include_self=False the first number for a place"
        " replaces what is there, and only the next ones are combined with it.",
        "Begin with count = [int(include_self)] * len(input). The key line is out[i] ="
        " combine(out[i], value) if count[i] else value, and then count[i] grows by one. For a"
        " mean, add, and divide by the counts at the end; integers with rounding_mode='floor'. A"
        " place with count 0 keeps what it has.",
        "This is the whole answer:\n"
        "    combine = {\n"
        "        'sum': torch.add,\n"
        "        'mean': torch.add,\n"
        "        'prod': torch.mul,\n"
        "        'amax': torch.maximum,\n"
        "        'amin': torch.minimum,\n"
        "    }[reduce]\n"
        "    out = input.clone()\n"
        "    count = [int(include_self)] * len(input)\n"
        "    for i, value in zip(index.tolist(), src):\n"
        "        out[i] = combine(out[i], value) if count[i] else value\n"
        "        count[i] += 1\n"
        "    if reduce == 'mean':\n"
        "        count = torch.tensor(count).clamp(min=1)\n"
        "        rounding = None if out.is_floating_point() else 'floor'\n"
        "        out = torch.div(out, count, rounding_mode=rounding).to(input.dtype)\n"
        "    return out",
    ),
    mistakes=MISTAKES,
    advice={
        Diagnosis.INPUT_CHANGED: "The arguments belong to the caller and stay as they are: write"
        " into a copy, such as input.clone(), and return that.",
        Diagnosis.ALIASED: "Return a copy, also where there is nothing to reduce: input.clone().",
        Diagnosis.WRONG_DTYPE: "The result has the dtype of input, as input.clone() and"
        " torch.zeros_like(input) have.",
        Diagnosis.WRONG_SHAPE: "The result has as many places as input, however long index is.",
        Diagnosis.WRONG_VALUE: "Take the place that is named in the message: write down the"
        " numbers of src whose index it is, and reduce them by hand.",
        Diagnosis.WRONG_TYPE: "The result is a new tensor, and it is returned.",
    },
)


# Means of segments. -----------------------------------------------------------------


def _with_gradients(
    answer: Callable[..., Any], leaves: dict[str, int], arguments: list[Any], cotangent: Any
) -> dict[str, Any]:
    """The result and its gradients; without rows there is nothing to differentiate by."""
    if len(arguments[0]):
        return differentiated(answer, arguments, leaves, cotangent.clone())
    result = answer(*arguments)
    return {"result": result.detach() if isinstance(result, torch.Tensor) else result}


def _segment_in_rank(
    answer: Callable[..., Any], values: Any, segment_ids: Any, num_segments: int, cotangent: Any
) -> dict[str, Any]:
    arguments = [values, segment_ids, num_segments]
    return _with_gradients(answer, {"values": 0}, arguments, cotangent)


segment_mean = Exercise(
    signature="segment_mean(values: Tensor, segment_ids: Tensor, num_segments: int) -> Tensor",
    summary="the mean of the rows of each segment, 0 for an empty one; gradients flow",
    inputs=segments,
    world_sizes=(1,),
    adapter=_segment_in_rank,
    expected=means,
    reduced=lambda c: len(c.values) + 3,
    magnitude=segment_sizes,
    hints=(
        "A mean is a sum divided by a count, and both are indexed sums. One adds up the rows; what"
        " does the other add up?",
        "Start the sums with zeros of shape (num_segments, columns), in the dtype of values, and"
        " add the rows with index_add. Count with torch.bincount(segment_ids,"
        " minlength=num_segments). What does an empty segment divide by?",
        "This is the whole answer:\n"
        "    sums = values.new_zeros(num_segments, values.shape[1])\n"
        "    sums = sums.index_add(0, segment_ids, values)\n"
        "    counts = torch.bincount(segment_ids, minlength=num_segments)\n"
        "    return sums / counts.clamp(min=1)[:, None]",
    ),
    mistakes=(
        Mistake(
            "values belong to the caller, who differentiates by them: they may not be written into."
            " values * factor makes a new tensor.",
            when=says("in-place operation"),
        ),
        Mistake(
            "Two tensors of different dtypes meet in this line. What you make takes that of"
            " values: values.new_zeros(...) has it, torch.zeros(...) alone makes float32.",
            when=says(*TWO_DTYPES),
        ),
        Mistake(
            "One tensor here has a number for each segment, the other one for each column. If the"
            " counts are to divide the sums, counts[:, None] makes a column of them.",
            when=lambda e: sizes_meet(e, e.case.num_segments, e.case.values.shape[1]),
        ),
        Mistake(
            "These are the sums: divide each by the number of its rows.",
            when=like(lambda c: means(c, lambda counts: torch.ones_like(counts))),
        ),
        Mistake(
            "Everything is divided by the number of all rows. Each segment has a count of its own:"
            " torch.bincount(segment_ids, minlength=num_segments).",
            when=like(lambda c: means(c, lambda counts: counts.sum())),
        ),
        Mistake(
            "Everything is divided by the number of segments. Each segment has a count of its own:"
            " torch.bincount(segment_ids, minlength=num_segments).",
            when=like(lambda c: means(c, lambda counts: c.num_segments * torch.ones_like(counts))),
        ),
        Mistake(
            "The built-in mean counts the zeros that it starts with as one more row:"
            " include_self=False leaves them out.",
            when=lambda e: (
                e.written(r"(scatter|index)_reduce_?\(.*'mean'")
                and not e.written("include_self=False")
                and like(lambda c: means(c, lambda counts: counts + 1))(e)
            ),
        ),
        Mistake(
            "Every count is one too large. Against 0/0, raise only the counts that are 0:"
            " counts.clamp(min=1).",
            when=like(lambda c: means(c, lambda counts: counts + 1)),
        ),
        Mistake(
            "The rows of a segment need not stand together: row i belongs to segment"
            " segment_ids[i].",
            when=like(lambda c: means(c, ids=c.segment_ids.sort().values)),
        ),
        Mistake(
            "Where several rows belong to one segment, only the last is in the sum. An assignment"
            " replaces what was there, and sums[segment_ids] += values reads all the old sums"
            " before it writes any: index_add adds every row.",
            when=like(lambda c: means(c, add=lost_rows)),
        ),
        Mistake(
            "The result is right, but 0/0 in an empty segment makes the gradient nan, even if"
            " torch.where or nan_to_num hides it afterwards: 0 times nan is nan. Divide by"
            " counts.clamp(min=1).",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_GRADIENT
                and has_nan(e, "gradient of values")
                and bool(empty_segments(e.case).any())
            ),
        ),
        Mistake(
            "An empty segment has sum 0 and count 0, and 0/0 is nan, in mean() too. Its mean"
            " should be 0: divide the sum by counts.clamp(min=1).",
            when=lambda e: (
                has_nan(e, "result")
                and torch.equal(e.actual[0]["result"].isnan().any(1), empty_segments(e.case))
            ),
        ),
        Mistake(
            "The last segments may be empty, so segment_ids.max() + 1 is not the number of"
            " segments: num_segments is.",
            when=lambda e: is_cut(e, e.case.segment_ids, e.case.num_segments),
        ),
        Mistake(
            "Only the segments that have rows are in the result. An empty one has a row of zeros.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_SHAPE
                and len(e.actual[0]["result"])
                == len(e.case.segment_ids.unique())
                < e.case.num_segments
            ),
        ),
        Mistake(
            "There may be no rows at all: the result is zeros of shape (num_segments, columns).",
            when=lambda e: len(e.case.values) == 0,
        ),
        Mistake(
            "No gradient reaches values. It gets lost through .data, .detach(), .item(),"
            " .tolist(), torch.tensor(...) and torch.no_grad(): stay with torch operations on"
            " values.",
            when=lambda e: without(e, "values"),
        ),
    ),
    advice={
        Diagnosis.WRONG_GRADIENT: "The gradient of a row should be the upstream gradient of its"
        " segment, divided by the segment's count. Does every use of values in your function let"
        " the gradient through?",
        Diagnosis.INPUT_CHANGED: "The arguments belong to the caller and stay as they are: work on"
        " a copy.",
        Diagnosis.WRONG_DTYPE: "The means have the dtype of values: make the sums with"
        " values.new_zeros(...), and keep the counts no wider than they are.",
        Diagnosis.WRONG_SHAPE: "The result has a row for each of num_segments segments, and the"
        " columns of values.",
        Diagnosis.WRONG_VALUE: "Take the row that is named in the message: which rows have it in"
        " segment_ids, and what is their mean?",
    },
)


# A mixture of experts. --------------------------------------------------------------


def _combine_in_rank(
    combine: Callable[..., Any],
    rows: torch.Tensor,
    token_index: torch.Tensor,
    weight: torch.Tensor,
    num_tokens: int,
    cotangent: torch.Tensor,
    count_lines: bool,
) -> dict[str, Any]:
    """Call the answer; where asked, see whether more rows, or more tokens, take more lines."""
    arguments = [rows, token_index, weight, num_tokens]
    found = _with_gradients(combine, {"rows": 0, "weight": 2}, arguments, cotangent)
    if count_lines:

        def lines(n: int, tokens: int) -> int:
            some = rows.new_ones(n, rows.shape[1])
            return steps(combine, some, torch.arange(n) % tokens, weight.new_ones(n), tokens)

        few, many = 64, 256
        before, between, after = lines(few, few), lines(many, few), lines(many, many)
        if between - before >= many - few:
            raise ForbiddenCall(
                f"a Python loop over rows: {few} rows take {before} lines of your code, and"
                f" {many} rows for as many tokens take {between}"
            )
        if after - between >= many - few:
            raise ForbiddenCall(
                f"a Python loop over tokens: {few} tokens take {between} lines of your code, and"
                f" {many} tokens with as many rows take {after}"
            )
    return found


combine_experts = Exercise(
    signature="combine_experts(rows: Tensor, token_index: Tensor, weight: Tensor,"
    " num_tokens: int) -> Tensor",
    summary="out[t] is the sum of weight·row over the rows of token t; gradients flow",
    inputs=combinations,
    world_sizes=(1,),
    adapter=_combine_in_rank,
    expected=combined,
    reduced=lambda c: max(c.rows.shape) + 3,
    magnitude=combination_sizes,
    hints=(
        "There are two steps: weigh every row, then add it to the row of its token. Which"
        " operations of torch do each of them on all rows at once?",
        "weight has one number per row, so weight[:, None] * rows weighs the rows. Adding where"
        " an index says so, duplicates and all, is what index_add does.",
        "This is the whole answer:\n"
        "    out = rows.new_zeros(num_tokens, rows.shape[1])\n"
        "    return out.index_add(0, token_index, weight[:, None] * rows)",
    ),
    mistakes=(
        Mistake(
            "rows and weight belong to the caller, who differentiates by them: they may not be"
            " written into. weight[:, None] * rows makes a new tensor.",
            when=says("in-place operation"),
        ),
        Mistake(
            "Two tensors of different dtypes meet in this line. What you make takes that of rows:"
            " rows.new_zeros(...) has it, torch.zeros(...) alone makes float32.",
            when=says(*TWO_DTYPES),
        ),
        Mistake(
            "weight has one number per row: weight[:, None] makes a column of it, and that"
            " multiplies the rows.",
            when=lambda e: sizes_meet(e, *e.case.rows.shape),
        ),
        Mistake(
            "A token that several rows belong to has only the last of them. An assignment"
            " replaces what was there, and out[token_index] += reads all the old values before it"
            " writes any: index_add adds them all.",
            when=like(lambda c: combined(c, add=lost_rows)),
        ),
        Mistake(
            "These are the plain sums, as if weight were not there: row i counts weight[i] times.",
            when=like(lambda c: combined(c, torch.ones_like(c.weight))),
        ),
        Mistake(
            "The weights are divided by their sum. They come from the router as they should be:"
            " do not normalise them.",
            when=like(lambda c: combined(c, c.weight.double() / column_sums(c)[c.token_index])),
        ),
        Mistake(
            "The rows of a token are averaged: their weighted sum is asked for, no division.",
            when=like(
                lambda c: combined(
                    c,
                    c.weight.double() / torch.bincount(c.token_index)[c.token_index],
                )
            ),
        ),
        Mistake(
            "Every row is weighed with the weight of another one. weight[i] belongs to rows[i],"
            " not to token i.",
            when=like(lambda c: combined(c, c.weight[c.token_index])),
        ),
        Mistake(
            "The weights run along the columns, which is only possible because there are as many"
            " columns as rows: weight[:, None] * rows gives each row its weight.",
            when=along_columns,
        ),
        Mistake(
            "There is still one row for each row of `rows`. Those that belong to one token have"
            " to be added up, so that each token has one.",
            when=lambda e: (
                e.diagnosis is Diagnosis.WRONG_SHAPE
                and e.actual[0]["result"].shape == e.case.rows.shape
            ),
        ),
        Mistake(
            "The last tokens may have no row, so token_index.max() + 1 is not the number of"
            " tokens: num_tokens is.",
            when=lambda e: is_cut(e, e.case.token_index, e.case.num_tokens),
        ),
        Mistake(
            "No gradient reaches weight, so the router would learn nothing: multiply with weight"
            " itself, not with weight.detach(), weight.data or weight.tolist().",
            when=lambda e: without(e, "weight") and not without(e, "rows"),
        ),
        Mistake(
            "No gradient reaches rows, so the experts would learn nothing: add up rows"
            " themselves, not rows.detach() or rows.data.",
            when=lambda e: without(e, "rows") and not without(e, "weight"),
        ),
        Mistake(
            "There may be no rows at all: the result is zeros of shape (num_tokens, columns).",
            when=lambda e: len(e.case.rows) == 0,
        ),
        Mistake(
            "On a GPU every turn launches kernels of its own, and a batch has many thousand rows."
            " Let torch go over them all at once: weight[:, None] * rows weighs them, and"
            " index_add adds them up.",
            when=says("a Python loop over rows"),
        ),
        Mistake(
            "On a GPU every turn launches kernels of its own, and a batch has many thousand"
            " tokens. index_add adds every weighed row to the row of its token, for all tokens at"
            " once.",
            when=says("a Python loop over tokens"),
        ),
    ),
    advice={
        Diagnosis.INPUT_CHANGED: "The arguments belong to the caller and stay as they are: work on"
        " a copy.",
        Diagnosis.WRONG_GRADIENT: "rows and weight both need their gradient: use torch operations"
        " on the tensors that you were given, without .data, .detach(), .tolist() or"
        " torch.no_grad().",
        Diagnosis.WRONG_SHAPE: "The result has a row for each of num_tokens tokens, and the"
        " columns of rows.",
        Diagnosis.WRONG_DTYPE: "The result has the dtype of rows: start with"
        " rows.new_zeros(num_tokens, columns).",
        Diagnosis.WRONG_VALUE: "Take the token that is named in the message: which rows have it"
        " in token_index, and what is the sum of weight times row?",
    },
)
