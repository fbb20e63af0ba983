"""An expected and an actual result side by side: what is cut, marked and said."""

from __future__ import annotations

import pytest
import torch

from grader.exercise.compare import side_by_side
from headcount.core.values import Opaque

T = torch.tensor


def marked(row):
    return [row.actual[start:stop] for start, stop in row.wrong]


@pytest.mark.parametrize(
    "expected, actual, shown, asked, wrong, note",
    [
        (T([10, 11, 12]), T([0, 1, 2]), "[ 0  1  2]", "[10 11 12]", ["0", "1", "2"], "all three"),
        (T([10, 11, 12]), T([10, 1, 12]), "[10  1 12]", "[10 11 12]", ["1"], "element 1"),
        (T([1, 2, 3]), T([1, 5, 6]), "[1 5 6]", "[1 2 3]", ["5", "6"], "elements 1 and 2"),
        (T([[1, 2], [3, 4]]), T([[1, 2], [9, 4]]), "[1 2 9 4]", "[1 2 3 4]", ["9"],
         "element [1, 0]"),
        ((1, 1), [1, 0], "[1, 0]", "[1, 1]", ["0"], "entry 1"),
        ([T([1.0]), T([3.0, 4.0])], [T([1.0]), T([3.0, 5.0])], "entry 1: [3 5]", "entry 1: [3 4]",
         ["5"], "element 1"),
        ([(0, 1), (0, 2)], [(0, 1), (3, 4)], "entry 1: (3, 4)", "entry 1: (0, 2)", ["3", "4"], ""),
        ({"result": T([1.0]), "gradient of x": T([2.0])},
         {"result": T([1.0]), "gradient of x": T([4.0])},
         "gradient of x: [4]", "gradient of x: [2]", ["4"], ""),
        (T([0, 1]), [0, 1], "[0, 1]", "[0 1]", ["[0, 1]"], "a list, should be a tensor"),
        (T([1, 2]), T([1.0, 2.0]), "[1 2]", "[1 2]", ["[1 2]"], "float32, should be int64"),
        (T([1, 2]), T([[1, 2]]), "[1 2]", "[1 2]", ["[1 2]"], "shape (1, 2), should be (2,)"),
        ((1, 2), [1], "[1]", "(1, 2)", ["[1]"], "1 entry, should be 2"),
        ((1, 2), None, "None", "(1, 2)", ["None"], "None, should be a pair"),
        (T([1]), Opaque("a generator"), "a generator", "[1]", ["a generator"],
         "a generator, should be a tensor"),
        (3, 3.0, "3.0", "3", ["3.0"], "a float, should be an int"),
        (3, 4, "4", "3", ["4"], ""),
        (1.0, 10**400, "an int of 1329 bits", "1.0", ["an int of 1329 bits"],
         "an int, should be a float"),
        ([1, 10**400], [1, 2], "[1, 2]", None, ["2"], "entry 1"),
    ],
)  # fmt: skip
def test_a_row_shows_what_differs_and_says_it(expected, actual, shown, asked, wrong, note):
    row = side_by_side(2, expected, actual)
    assert (row.rank, row.right, row.actual, row.note) == (2, False, shown, note)
    assert marked(row) == wrong
    assert asked is None or row.expected == asked


def test_a_long_value_is_cut_around_its_first_difference():
    expected = torch.arange(1000.0)
    actual = expected.clone()
    actual[517] += 1e-3
    row = side_by_side(0, expected, actual)
    assert row.actual != row.expected
    assert marked(row) == ["517.001"]
    assert row.actual.startswith("[… ")
    assert row.actual.endswith(" …]")
    assert "516" in row.actual
    assert "518" in row.actual
    assert row.note == "element 517"
    assert len(row.actual) < 45


@pytest.mark.parametrize("one, other", [(0.1, 0.1 + 2**-27), (1e30, 1.0000001e30)])
def test_numbers_that_differ_never_look_alike(one, other):
    row = side_by_side(0, T([one], dtype=torch.float64), T([other], dtype=torch.float64))
    assert row.actual != row.expected


def test_texts_are_cut_around_their_first_difference():
    row = side_by_side(0, "a" * 100 + "b", "a" * 100 + "c")
    assert row.actual.endswith("ac'")
    assert row.expected.endswith("ab'")
    assert max(len(row.actual), len(row.expected)) <= 35


def test_a_tolerated_error_is_not_marked():
    expected, actual = T([1.0, 2.0]), T([1.0 + 2**-23, 3.0])
    row = side_by_side(0, expected, actual, terms=4)
    assert (marked(row), row.note) == (["3"], "element 1")


def test_a_right_value_stands_alone():
    row = side_by_side(0, T([1, 2]), T([1, 2]))
    assert (row.right, row.actual, row.wrong, row.note) == (True, "[1 2]", (), "")
    assert side_by_side(0, [T([1.5]), T([2])], [T([1.5]), T([2])]).actual == "[[1.5], [2]]"
    row = side_by_side(0, (torch.arange(100), [0, 2]), (torch.arange(100), [0, 2]))
    assert row.actual.startswith("([0 1 2 ")
    assert row.actual.endswith("… (100 in all)], [0, 2])")
    assert side_by_side(0, 1.0, 1, relative=1e-9).right
