"""The inputs that are drawn: the same everywhere, and nobody's to guess."""

from __future__ import annotations

import hashlib

import pytest
import torch

from grader.exercise.cases import OPS, Draw, Kind, reduced

SEED = 2**127 + 12345


def words(number, exercise="broadcast", n=4, count=6):
    """The bits of a draw, found without torch and numpy."""
    bits = hashlib.shake_256(f"{SEED}/{exercise}/{n}/{number}".encode()).digest(4 * count)
    return [int.from_bytes(bits[i : i + 4], "little") for i in range(0, len(bits), 4)]


def test_integers_and_factors_are_the_bits_by_hand():
    draw = Draw(SEED, "broadcast", 4)
    integers = draw.tensor(Kind(torch.int64, (2, 3)))
    assert integers.flatten().tolist() == [word % 199 - 99 for word in words(1)]
    whole = draw.factors(Kind(torch.int64, (6,)))
    assert whole.tolist() == [(1 + (word >> 1) % 2) * (word % 2 * 2 - 1) for word in words(2)]
    sizes = draw.factors(Kind(torch.float64, (6,)))
    assert sizes.tolist() == [(word / 2**32 + 0.5) * (word % 2 * 2 - 1) for word in words(3)]


def test_numbers_are_those_that_they_have_always_been():
    """Bit by bit: no version of torch or numpy may change them."""
    draw = Draw(SEED, "broadcast", 4)
    assert draw.tensor(Kind(torch.int64, (2, 3))).tolist() == [[84, 72, 13], [-24, 19, 30]]
    draw.tensor(Kind(torch.int64, (5,)))
    assert draw.factors(Kind(torch.int64, (5,))).tolist() == [-1, 1, 2, 2, -2]
    assert [x.hex() for x in draw.tensor(Kind(torch.float64, (3,))).tolist()] == [
        "0x1.64763fbfeb436p-2",
        "0x1.4cc34366bb1dep-1",
        "-0x1.d274b88c3aae6p+0",
    ]
    draw.factors(Kind(torch.float64, (3,)))
    assert draw.tensor(Kind(torch.bfloat16, (3,))).tolist() == [
        0.291015625,
        -0.1005859375,
        -0.53515625,
    ]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_floating_point_numbers_are_spread_almost_like_normal_ones(dtype):
    drawn = Draw(SEED, "spread", 2).tensor(Kind(dtype, (100_000,)))
    assert drawn.dtype == dtype
    numbers = drawn.double()
    assert abs(float(numbers.mean())) < 0.02
    assert abs(float(numbers.std()) - 1) < 0.02
    for bound, share in ((0.5, 0.3829), (1, 0.6827), (2, 0.9545)):
        assert abs(float((numbers.abs() < bound).double().mean()) - share) < 0.02


def test_all_integers_come_equally_often():
    drawn = Draw(SEED, "spread", 2).tensor(Kind(torch.int64, (199_000,)))
    counts = (drawn + 99).bincount(minlength=199)
    assert len(counts) == 199
    assert 800 < int(counts.min()) <= int(counts.max()) < 1200


@pytest.mark.parametrize(
    "dtype, sizes", [(torch.int64, {1, 2}), (torch.float64, None), (torch.bfloat16, None)]
)
def test_factors_are_of_both_signs_and_near_one(dtype, sizes):
    drawn = Draw(SEED, "spread", 2).factors(Kind(dtype, (10_000,)))
    assert drawn.dtype == dtype
    assert abs(float((drawn > 0).double().mean()) - 0.5) < 0.02
    assert sizes is None or set(drawn.abs().tolist()) == sizes
    assert sizes is not None or 0.5 <= float(drawn.abs().min()) < float(drawn.abs().max()) <= 1.5


def test_a_float64_cannot_be_sent_as_a_float32():
    draw = Draw(SEED, "spread", 2)
    for numbers in (
        draw.tensor(Kind(torch.float64, (1000,))),
        draw.factors(Kind(torch.float64, (1000,))),
    ):
        assert int((numbers.float().double() == numbers).sum()) < 20


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (3, 0), (1,), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64])
def test_every_shape_can_be_drawn(dtype, shape):
    draw = Draw(SEED, "shapes", 3)
    for tensor in (draw.tensor(Kind(dtype, shape)), draw.factors(Kind(dtype, shape))):
        assert (tensor.dtype, tuple(tensor.shape)) == (dtype, shape)
    draw.case("the first")
    ranks = draw.per_rank(Kind(dtype, shape))
    assert [(t.dtype, tuple(t.shape)) for t in ranks] == [(dtype, shape)] * 3


def test_no_two_draws_are_alike():
    kind = Kind(torch.float64, (4,))
    draw = Draw(SEED, "a", 3)
    first, second = draw.tensor(kind), draw.tensor(kind)
    others = [
        second,
        *draw.per_rank(kind),
        Draw(SEED, "b", 3).tensor(kind),
        Draw(SEED, "a", 4).tensor(kind),
    ]
    assert not any(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("bit", [0, 31, 32, 62, 63, 64, 127])
def test_every_bit_of_the_seed_counts(bit):
    kind = Kind(torch.int64, (16,))
    one, other = (Draw(seed, "a", 3).tensor(kind) for seed in (SEED, SEED ^ 1 << bit))
    assert not torch.equal(one, other)


def test_the_first_case_tells_whose_each_number_is():
    draw = Draw(SEED, "gather", 4)
    kind = Kind(torch.int64, (3,))
    assert [t.tolist() for t in draw.per_rank(kind)] == [
        [0, 1, 2],
        [10, 11, 12],
        [20, 21, 22],
        [30, 31, 32],
    ]
    # a second draw of the same case holds other numbers
    assert draw.per_rank(kind)[2].tolist() == [120, 121, 122]
    draw.case("the first")
    assert max(abs(t[2]) for t in draw.per_rank(kind)) <= 99
    assert draw.per_rank(kind)[2].tolist() != [220, 221, 222]


def test_the_first_case_tells_which_chunk_a_number_is_from():
    chunks = Draw(SEED, "all_to_all", 3).chunks(Kind(torch.float64, (2,)))
    assert [[t.tolist() for t in row] for row in chunks] == [
        [[0, 1], [10, 11], [20, 21]],
        [[100, 101], [110, 111], [120, 121]],
        [[200, 201], [210, 211], [220, 221]],
    ]


def test_ranks_may_have_different_lengths():
    rows = Draw(SEED, "uneven", 3).per_rank([Kind(torch.int64, (n, 2)) for n in (0, 1, 2)])
    assert [t.tolist() for t in rows] == [[], [[10, 11]], [[20, 21], [22, 23]]]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_the_first_sum_has_a_digit_for_every_rank(n, dtype):
    draw = Draw(SEED, "reduce", n)
    assert sum(draw.per_rank(Kind(dtype, (4,)), "SUM")).tolist() == [
        digit * (10**n - 1) // 9 for digit in (1, 2, 3, 4)
    ]
    means = (sum(draw.per_rank(Kind(dtype, (2,)), "AVG")) // n).tolist()
    assert means == [digit * (10**n - 1) // 9 for digit in (2, 3)]


@pytest.mark.parametrize("dtype, n", [(torch.bfloat16, 4), (torch.float32, 8), (torch.int64, 100)])
def test_what_a_dtype_cannot_hold_exactly_is_random_in_the_first_case_too(dtype, n):
    terms = Draw(SEED, "reduce", n).per_rank(Kind(dtype, (4,)), "SUM")
    assert max(float(abs(t[2])) for t in terms) < 100


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("op", ["SUM", "MIN", "MAX", "PRODUCT", ""])
@pytest.mark.parametrize(("dtype", "wrong"), [(torch.float32, [0, 1]), (torch.float64, [0])])
def test_integers_that_become_floats_on_their_way_are_wrong_whatever_is_drawn(n, op, dtype, wrong):
    for seed in range(20):
        draw = Draw(seed, "reduce", n)
        draw.case("the first")
        numbers = draw.per_rank(Kind(torch.int64, (3,)), op)
        right = reduced(OPS[op], numbers) if op else numbers[-1]
        floats = [one.to(dtype) for one in numbers]
        combine = {"SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum}
        total = floats[-1]
        for one in floats[:-1] if op else ():
            total = combine.get(op, torch.maximum)(total, one)
        assert (total.to(torch.int64) != right).nonzero().flatten().tolist() == wrong


def test_a_sum_without_one_rank_is_wrong_in_floats_as_well():
    draw = Draw(SEED, "survivors", 5)
    draw.case("the first")
    numbers = draw.per_rank(Kind(torch.int64, (1,)), "SUM")
    for left_out in range(5):
        others = [one for rank, one in enumerate(numbers) if rank != left_out]
        assert int(sum(one.double() for one in others)) != sum(others)


def test_special_numbers_are_in_other_places_of_each_tensor():
    draw = Draw(SEED, "special", 4)
    draw.case("the first")
    ranks = draw.per_rank(Kind(torch.float32, (100,), special=True))
    for kept in (torch.isnan, torch.isposinf, torch.isneginf, lambda t: t == 0):
        assert all(bool(kept(t).any()) for t in ranks)
    assert len({tuple(torch.isnan(t).tolist()) for t in ranks}) == 4
    assert bool((torch.signbit(ranks[0]) & (ranks[0] == 0)).any())
    assert float(torch.isfinite(torch.stack(ranks)).double().mean()) > 0.9


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("op", ["MIN", "MAX"])
def test_no_start_but_the_first_number_is_right_for_a_minimum_or_maximum(op, dtype):
    draw = Draw(SEED, "extreme", 3)
    draw.case("the first")
    terms = torch.stack(draw.per_rank(Kind(dtype, (2, 4)), op)).double().flatten(1)
    found = terms.amin(0) if op == "MIN" else terms.amax(0)
    for start in (0.0, 1e9, -1e9, *((1e30, -1e30) if dtype is torch.float32 else ())):
        begun = torch.full_like(found, start)
        assert not torch.equal(
            (torch.minimum if op == "MIN" else torch.maximum)(found, begun), found
        )
