"""Differences are found, and named by place and value."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grader.exercise.compare import compare, differing_bits, side_by_side, tolerance, wrong_elements
from headcount.core.codec import pack, unpack
from headcount.core.values import Opaque, describe, show, tensors_in
from headcount.core.verdict import Diagnosis

T = torch.tensor


@pytest.mark.parametrize(
    "value",
    [
        T([1, 2]), T([1.0, float("nan")]), T(3), torch.empty(0, 2), None, 1, 2.5, "a", True,
        [T([1])], (1, (2, 3)), {"a": T([1.0]), "b": None},
    ],
)  # fmt: skip
def test_a_value_does_not_differ_from_itself(value):
    assert compare(value, value) is None


def test_a_tuple_is_as_good_as_a_list():
    assert compare([1, [2]], (1, (2,))) is None
    assert compare((1, 2), [1, 2]) is None


@pytest.mark.parametrize(
    "expected, actual, word, text",
    [
        (T([1]), [1], "wrong_type", "should be an int64 tensor of shape (1,), but is a list of 1"),
        (T([1]), None, "wrong_type", "but is None"),
        (T([1]), Opaque("a generator"), "wrong_type", "but is a generator"),
        (None, T([1]), "wrong_type", "should be None"),
        ([T([1])], T([1]), "wrong_type", "should be a list of 1"),
        (1, True, "wrong_type", "should be an int (1)"),
        (1, 1.0, "wrong_type", "but is the float 1.0"),
        (1, 2, "wrong_value", "should be 1, but is 2"),
        ("a", "b", "wrong_value", "should be 'a'"),
        ([1, 2], [1], "wrong_shape", "should be a list of 2, but has 1 entries"),
        (T([1, 2]), T([[1, 2]]), "wrong_shape", "should have shape (2,), but has (1, 2)"),
        (T([1, 2]), T([1.0, 2.0]), "wrong_dtype", "should be int64, but is float32"),
        (T([1, 2, 3]), T([1, 5, 4]), "wrong_value",
         "element [1] of the result should be 2, but is 5; 2 of 3 elements are wrong"),
        (T([[1, 2], [3, 4]]), T([[1, 2], [0, 4]]), "wrong_value", "element [1, 0]"),
        (T(1), T(2), "wrong_value", "the value of the result should be 1, but is 2"),
        ([T([1]), T([2])], [T([1]), T([3])], "wrong_value", "element [0] of entry 1 should"),
        ({"a": T([1])}, {"a": T([2])}, "wrong_value", "element [0] of a should"),
        ({"a": 1}, {"b": 1}, "wrong_value", "the result lacks 'a'"),
        ({"a": 1}, {"a": 1, "b": 1}, "wrong_value", "the result should not hold 'b'"),
        (T([1.0]), T([float("nan")]), "wrong_value", "but is nan"),
    ],
)  # fmt: skip
def test_differences(expected, actual, word, text):
    found = compare(expected, actual)
    assert found.diagnosis == word
    assert text in found.message


def test_the_name_of_an_argument_is_used():
    assert compare(T([1]), T([2]), name="x").message.startswith("element [0] of x should be 1")


def test_moved_data_must_agree_bit_by_bit():
    x = T([0.1])
    y = torch.nextafter(x, T([1.0]))
    assert compare(x, y) is not None
    assert compare(x, y, terms=2) is None


def test_integers_are_never_allowed_an_error():
    assert tolerance(torch.int64, 8) == 0.0
    assert compare(T([1]), T([2]), terms=8) is not None


@given(
    st.lists(st.floats(-100, 100, width=32), min_size=2, max_size=8),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_any_order_of_a_sum_is_within_tolerance(numbers, dtype):
    values = [T([x], dtype=torch.float64).to(dtype) for x in numbers]
    exact = torch.stack([v.double() for v in values]).sum(0).to(dtype)
    scale = torch.stack([v.double().abs() for v in values]).sum(0)
    for order in (values, values[::-1], sorted(values, key=lambda v: abs(v.item()))):
        total = order[0].clone()
        for value in order[1:]:
            total = total + value
        assert compare(exact, total, terms=len(values), scale=scale) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("terms", [2, 8])
def test_a_missing_term_is_never_within_tolerance(dtype, terms):
    whole = torch.full((1,), float(terms), dtype=dtype)
    assert compare(whole, whole - 1, terms=terms) is not None
    assert compare(whole, whole / terms, terms=terms) is not None


def test_texts():
    assert describe(T([1.0])) == "a float32 tensor of shape (1,)"
    assert show(T([1.0, 2.5, -3.0])) == "[1.0, 2.5, -3.0]"
    assert show(T([[1, 2]])) == "[1, 2] shape (1, 2)"
    assert show(T(7)) == "7"
    assert show(list(range(3))) == "[0, 1, 2]"
    assert len(show(torch.arange(1000))) <= 72
    assert show("a\nb") == "'a\\nb'"
    assert show({"a": T([1, 2]), 3: "b"}) == "{'a': [1, 2], 3: 'b'}"
    assert tensors_in({"a": [T(1), (T(2),)], "b": 3}) == [T(1), T(2)]


# Numbers of a formula. ------------------------------------------------------------


@pytest.mark.parametrize("actual", [0.3, 0.1 + 0.2, 0.3 * (1 + 1e-10)])
def test_a_number_of_a_formula_may_be_off_a_little(actual):
    assert compare(0.3, actual, relative=1e-9) is None
    assert compare((1.0, 0.3), [1, actual], relative=1e-9) is None


def test_without_a_tolerance_a_number_is_the_very_number():
    assert compare(0.3, 0.1 + 0.2) is not None
    assert compare(1.0, 1).diagnosis == "wrong_type"


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_the_tolerance_is_relative(size):
    assert compare(size, size * (1 + 1e-8), relative=1e-9) is not None
    assert compare(size, size * (1 - 1e-8), relative=1e-9) is not None
    assert compare(size, 0, relative=1e-9) is not None
    assert compare(0.0, size * 1e-12, relative=1e-9) is not None


def test_the_tolerance_may_be_relative_to_something_else():
    assert compare(0.0, 1e-12, scale=1e-2, relative=1e-9) is None
    assert compare((0.0, 1.0), (1e-12, 1.0), scale=(1e-2, 1.0), relative=1e-9) is None
    assert compare(0.0, 1e-9, scale=1e-2, relative=1e-9) is not None


@pytest.mark.parametrize(
    "expected, actual",
    [
        (float("inf"), 1e300),
        (1e300, float("inf")),
        (float("inf"), float("-inf")),
        (1.0, float("nan")),
        (float("inf"), float("nan")),
        (1.0, 10**400),
        (float("inf"), 10**400),
        (float("-inf"), -(10**400)),
    ],
)
def test_nothing_is_near_to_infinity(expected, actual):
    assert compare(expected, actual, relative=1e-9, scale=abs(expected)) is not None
    assert compare(float("inf"), float("inf"), relative=1e-9) is None


@pytest.mark.parametrize("actual", [None, True, "1.0", T(1.0), Opaque("a numpy.ndarray"), [1.0]])
def test_a_number_of_a_formula_is_a_number(actual):
    found = compare(1.0, actual, relative=1e-9)
    assert found.diagnosis == "wrong_type"
    assert "the result should be a number (1), but is " in found.message


def test_a_message_shows_the_digits_that_differ():
    found = compare(1.0, 1.0 + 1e-8, relative=1e-9)
    assert found.message == "the result should be 1, but is 1.00000001"
    assert compare(0.25, 0.5, relative=1e-9).message == "the result should be 0.25, but is 0.5"
    assert compare(1.0, -(10**400), relative=1e-9).message.endswith("should be 1, but is -inf")
    assert compare(1.0, 10**400, relative=1e-9).message.endswith("should be 1, but is inf")


def test_a_tensor_that_was_too_large_to_be_sent_is_of_the_wrong_shape():
    large = unpack(pack(torch.ones(1).expand(10**6, 10**6), limit=100))
    found = compare(torch.ones(2), large)
    assert found.diagnosis is Diagnosis.WRONG_SHAPE
    assert found.message == "the result should have shape (2,), but has (1000000, 1000000)"
    same = compare(torch.ones(4), unpack(pack(torch.ones(4), limit=1)))
    assert same.diagnosis is Diagnosis.WRONG_SHAPE


# Every special value, beside a slow and obvious way to say the same. ---------------

INF, NAN = float("inf"), float("nan")
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.0 + 2**-20,
    2**-149,
    1e-45,
    3.4e38,
    -3.4e38,
    INF,
    -INF,
    NAN,
    -NAN,
]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def is_wrong(expected, actual, terms, scale, dtype):
    if math.isnan(expected) or math.isnan(actual):
        return not (math.isnan(expected) and math.isnan(actual))
    if expected == actual:
        return False
    if terms == 0 or math.isinf(expected) or math.isinf(actual) or math.isinf(scale):
        return True
    return not abs(actual - expected) <= tolerance(dtype, terms) * abs(scale)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("terms", [0, 2, 1000])
@pytest.mark.parametrize("scaled", [False, True])
def test_special_values_are_compared_as_the_obvious_way_does(dtype, terms, scaled):
    triples = list(itertools.product(SPECIAL, SPECIAL, [1.0, INF] if scaled else [None]))
    expected, actual = (T([one[i] for one in triples], dtype=dtype) for i in (0, 1))
    scale = T([one[2] for one in triples], dtype=dtype) if scaled else None
    bounds = expected if scale is None else scale
    found = wrong_elements(expected, actual, terms, scale).tolist()
    columns = zip(*(one.double().tolist() for one in (expected, actual, bounds)), strict=True)
    assert found == [is_wrong(want, got, terms, bound, dtype) for want, got, bound in columns]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_special_values_have_the_same_bits_as_the_obvious_way_says(dtype):
    for one, other in itertools.product(T(SPECIAL, dtype=dtype), repeat=2):
        a, b = one.item(), other.item()
        same = (a == b and math.copysign(1, a) == math.copysign(1, b)) or (
            math.isnan(a) and math.isnan(b)
        )
        assert (differing_bits(one, other) is None) is same, (a, b)


def test_elements_of_another_kind_that_look_the_same_are_named():
    row = side_by_side(0, (0, 1), (T(0), T(1)))
    assert (row.expected, row.actual) == ("(0, 1)", "(0, 1)")
    assert row.note == "both: a tensor, should be an int"


def test_of_a_mapping_the_key_that_is_missing_or_not_asked_for_is_shown():
    row = side_by_side(0, {"a": 1.5, "b": 2.5}, {"a": 1.5})
    assert (row.expected, row.actual, row.note) == ("b: 2.5", "b: nothing", "missing")
    row = side_by_side(0, {"a": 1.5}, {"a": 1.5, "c": 3.5})
    assert (row.expected, row.actual, row.note) == ("c: nothing", "c: 3.5", "not asked for")


def test_of_the_graders_own_report_only_what_is_wrong_is_shown():
    assert side_by_side(0, {"a": 1}, {"a": 1}, report=True).actual == "all right"
    assert side_by_side(0, {"a": 1}, {"a": 1}).actual != "all right"
