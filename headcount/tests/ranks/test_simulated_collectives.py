"""The built-in collectives of simulated ranks: what they leave, and what they take."""

from __future__ import annotations

import functools

import pytest
import torch
import torch.distributed as dist

from headcount.core.errors import RequestError
from headcount.core.packing import live_program
from headcount.core.verdict import Diagnosis
from headcount.launch.launchers import default_launcher
from headcount.launch.world import Job
from headcount.rank.arguments import COLLECTIVES
from headcount.simulation.algorithms import ALGORITHMS, DEFAULTS, SOURCES, choose, packed
from headcount.simulation.builtin import Builtins
from headcount.simulation.calls import installed
from headcount.simulation.clusters import Flat
from headcount.simulation.launch import simulate
from headcount.simulation.world import SimulatedWorld
from support.worlds import line_in, play

# the names that all torch versions know
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning")


A, B = 10**15, 10**11  # ticks of Flat's α and β

EVERY = [(collective, name) for collective, known in ALGORITHMS.items() for name in known]

SIZES = (*range(1, 10), 16)


def run(function, size, allowed=None, **algorithms):
    """A simulated world whose ranks have all returned from ``function()``."""
    world = SimulatedWorld([function] * size, Flat().network(size))
    with installed(world, Builtins(packed(algorithms, allowed), allowed)):
        world.run()
        world.end()
    for rank in world.ranks:
        if rank.error is not None:
            raise rank.error
    assert all(rank.ended is not None for rank in world.ranks)
    return world


def values(world):
    return [rank.value for rank in world.ranks]


# What they leave. -------------------------------------------------------------------


def drawn(rank, *shape, dtype=torch.float32, most=9):
    """Small whole numbers, so that no order of adding them rounds."""
    numbers = torch.Generator().manual_seed(100 + rank)
    return torch.randint(0 if most > 2 else 1, most + 1, shape, generator=numbers).to(dtype)


def combined(op, tensors):
    """A reduction by its definition, one tensor after the other."""
    dtype = tensors[0].dtype
    pair = {
        "SUM": lambda a, b: (a + b).to(dtype),
        "AVG": lambda a, b: a + b,
        "PRODUCT": lambda a, b: (a * b).to(dtype),
        "MIN": torch.minimum,
        "MAX": torch.maximum,
        "BAND": torch.bitwise_and,
        "BOR": torch.bitwise_or,
        "BXOR": torch.bitwise_xor,
    }[op]
    result = functools.reduce(pair, tensors)
    return result / len(tensors) if op == "AVG" else result


def lengths(n):
    return (0, 1, n + 1, 3 * n, 23)


KINDS = (
    *((torch.float32, op) for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX")),
    *((torch.int64, op) for op in ("SUM", "PRODUCT", "MAX", "BAND", "BOR", "BXOR")),
    *((torch.bool, op) for op in ("SUM", "MIN", "BXOR")),
    (torch.float64, "SUM"),
    (torch.bfloat16, "SUM"),
    (torch.uint8, "SUM"),
)
DTYPES = (torch.float32, torch.int64, torch.bool, torch.bfloat16)


@functools.cache  # by each rank of each algorithm
def reductions(n):
    """By reduction and dtype, what each rank has, and what comes of it."""
    found = []
    for dtype, op in KINDS:
        most = 2 if op == "PRODUCT" else 9
        for length in lengths(n):
            sent = [drawn(rank, length, dtype=dtype, most=most) for rank in range(n)]
            found.append((op, sent, combined(op, sent)))
    return found


@functools.cache
def tensors(n):
    """Of several dtypes and lengths, what each rank has."""
    return [
        [drawn(rank, length, dtype=dtype) for rank in range(n)]
        for dtype in DTYPES
        for length in lengths(n)
    ]


def uneven(n):
    """How many elements each rank (row) has for each (column)."""
    return drawn(n, n, n, dtype=torch.int64, most=4)


# Each yields pairs of what a rank has and what it should have.


def leaves_broadcast(rank, n):
    for root in {0, n - 1, n // 2}:
        for sent in tensors(n):
            x = sent[rank].clone()
            dist.broadcast(x, root)
            yield x, sent[root]


def leaves_reduce(rank, n):
    for root in {0, n - 1, n // 2}:
        for op, sent, result in reductions(n):
            x = sent[rank].clone()
            dist.reduce(x, root, getattr(dist.ReduceOp, op))
            yield x, result if rank == root else sent[rank]


def leaves_all_reduce(rank, n):
    for op, sent, result in reductions(n):
        x = sent[rank].clone()
        dist.all_reduce(x, getattr(dist.ReduceOp, op))
        yield x, result


def leaves_all_gather(rank, n):
    for sent in tensors(n):
        into = [torch.empty_like(x) for x in sent]
        dist.all_gather(into, sent[rank])
        yield from zip(into, sent, strict=True)
        whole = torch.empty(n * len(sent[0]), dtype=sent[0].dtype)
        dist.all_gather_into_tensor(whole, sent[rank])
        yield whole, torch.cat(sent)


def leaves_reduce_scatter(rank, n):
    for op, sent, result in reductions(n):
        for cut in (lambda x: x.tensor_split(n), lambda x: [x[: i % 3] for i in range(n)]):
            parts, before = list(cut(sent[rank])), sent[rank].clone()
            out = torch.empty_like(parts[rank])
            dist.reduce_scatter(out, parts, getattr(dist.ReduceOp, op))
            yield out, cut(result)[rank]
            yield sent[rank], before
        per = len(sent[0]) // n
        out, whole = torch.empty_like(sent[0][:per]), sent[rank][: n * per]
        dist.reduce_scatter_tensor(out, whole, getattr(dist.ReduceOp, op))
        yield out, result[rank * per : (rank + 1) * per]


def leaves_scatter(rank, n):
    for root in {0, n - 1, n // 2}:
        for sent in tensors(n):
            out = torch.empty_like(sent[rank])
            dist.scatter(out, sent if rank == root else None, root)
            yield out, sent[rank]


def leaves_gather(rank, n):
    for root in {0, n - 1, n // 2}:
        for sent in tensors(n):
            into = [torch.empty_like(x) for x in sent] if rank == root else None
            dist.gather(sent[rank], into, root)
            yield from zip(into or (), sent, strict=into is not None)


def leaves_all_to_all(rank, n):
    counts = uneven(n)
    for dtype in DTYPES:
        sent = [drawn(r, int(counts[r].sum()), 2, dtype=dtype) for r in range(n)]
        parts = [x.split(c) for x, c in zip(sent, counts.tolist(), strict=True)]
        expected = torch.cat([mine[rank] for mine in parts])
        got = torch.empty_like(expected)
        dist.all_to_all_single(got, sent[rank], counts[:, rank].tolist(), counts[rank].tolist())
        yield got, expected
        for per in (0, 1, 3):
            even = [drawn(r, n * per, 2, dtype=dtype) for r in range(n)]
            expected = torch.cat([x[rank * per : (rank + 1) * per] for x in even])
            got = torch.empty_like(even[rank])
            dist.all_to_all_single(got, even[rank])
            yield got, expected
            into = list(torch.empty_like(even[rank]).chunk(n)) if per else [expected] * n
            dist.all_to_all(into, list(even[rank].chunk(n)) if per else [expected] * n)
            yield torch.cat(into), expected


def leaves_barrier(rank, n):
    dist.barrier()
    yield torch.zeros(1), torch.zeros(1)


@pytest.mark.timeout(600)  # several sizes of a world
@pytest.mark.parametrize("collective, name", EVERY)
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((1, 3, 4, 7), id="few", marks=pytest.mark.exhaustive),
        pytest.param((2, 5, 6, 8, 9, 16), id="more", marks=pytest.mark.nightly),
    ],
)
def test_every_algorithm_leaves_what_the_definition_says(collective, name, sizes, subtests):
    leaves = globals()[f"leaves_{collective}"]

    def program(n):
        rank, found = dist.get_rank(), 0
        for have, wanted in leaves(rank, n):
            assert have.dtype == wanted.dtype
            assert torch.equal(have, wanted), f"rank {rank}: {have} for {wanted}"
            found += 1
        return found

    for n in sizes:
        with subtests.test(f"{n} ranks"):
            assert any(values(run(functools.partial(program, n), n, **{collective: name})))


def everything(rank, n, ops):
    """All collectives, of all dtypes; what they leave."""
    left = []
    for dtype, op in ops:
        most = 2 if op == "PRODUCT" else 9
        x, reduction = drawn(rank, 7, dtype=dtype, most=most), getattr(dist.ReduceOp, op)
        y, parts = x.clone(), [x.clone() + i for i in range(n)]
        parts = [part.to(dtype) for part in parts]
        dist.all_reduce(y, reduction)
        out = torch.empty_like(x)
        dist.reduce_scatter(out, parts, reduction)
        z = x.clone()
        dist.reduce(z, 1, reduction)
        left += [y, out] + [z] * (rank == 1)
        many = [torch.empty_like(x) for _ in range(n)]
        dist.all_gather(many, x)
        whole = torch.empty(7 * n, dtype=dtype)
        dist.all_gather_into_tensor(whole, x)
        dist.broadcast(out, n - 1)
        dist.gather(out, many if rank == 0 else None, 0)
        left += [*many, whole, out]
        got = torch.empty_like(whole)
        dist.all_to_all_single(got, whole)
        dist.scatter(out, parts if rank == 1 else None, 1)
        others = [torch.empty_like(x) for _ in range(n)]
        dist.all_to_all(others, parts)
        left += [got, out, *others]
        dist.barrier()
    return [tensor.clone() for tensor in left]


def test_they_leave_what_gloo_leaves():
    ops = [kind for kind in KINDS if kind != (torch.bool, "BXOR")]  # gloo leaves no bool there

    def answer():
        return everything(dist.get_rank(), dist.get_world_size(), ops)

    real, simulated = play(answer, 3, allowed=None), simulated_answer(answer, 3)
    if real.failure and "Backend gloo does not support" in real.failure.message:
        pytest.skip(f"torch {torch.__version__}: {real.failure.message}")
    assert real.failure is simulated.failure is None
    for theirs, ours in zip(real.results, simulated.results, strict=True):
        for one, other in zip(theirs.value, ours.value, strict=True):
            assert one.dtype == other.dtype
            assert torch.equal(one, other)


def test_objects_travel_as_tensors():
    def program():
        rank, n = dist.get_rank(), dist.get_world_size()
        everybody = [None] * n
        dist.all_gather_object(everybody, {"rank": rank})
        word = ["spoken" if rank == 1 else None]
        dist.broadcast_object_list(word, 1)
        return everybody, word

    expected = [{"rank": rank} for rank in range(3)], ["spoken"]
    assert values(run(program, 3)) == [expected] * 3


# What they take. --------------------------------------------------------------------


def levels(n):
    return (n - 1).bit_length()


#: By algorithm, for n ranks of s bytes a block, S = n·s the whole: messages, and how many α and
#: how many bytes one after the other; exactly, at powers of two.
COSTS = {
    ("broadcast", "binomial_tree"): lambda n, s: (n - 1, levels(n), levels(n) * n * s),
    ("broadcast", "scatter_allgather"): lambda n, s: (
        (n - 1) + n * (n - 1),
        levels(n) + n - 1,
        2 * (n - 1) * s,
    ),
    ("broadcast", "chain"): lambda n, s: (n - 1, n - 1, (n - 1) * n * s),
    ("broadcast", "linear"): lambda n, s: (n - 1, n - 1, (n - 1) * n * s),
    ("reduce", "binomial_tree"): lambda n, s: (n - 1, levels(n), levels(n) * n * s),
    ("reduce", "rabenseifner"): lambda n, s: (
        n * levels(n) + n - 1,
        2 * levels(n),
        2 * (n - 1) * s,
    ),
    ("reduce", "linear"): lambda n, s: (n - 1, n - 1, (n - 1) * n * s),
    ("all_reduce", "rabenseifner"): lambda n, s: (
        2 * n * levels(n),
        2 * levels(n),
        2 * (n - 1) * s,
    ),
    ("all_reduce", "ring"): lambda n, s: (2 * n * (n - 1), 2 * (n - 1), 2 * (n - 1) * s),
    ("all_reduce", "recursive_doubling"): lambda n, s: (
        n * levels(n),
        levels(n),
        levels(n) * n * s,
    ),
    ("all_reduce", "reduce_broadcast"): lambda n, s: (
        2 * (n - 1),
        2 * levels(n),
        2 * levels(n) * n * s,
    ),
    ("all_reduce", "linear"): lambda n, s: (2 * (n - 1), 2 * (n - 1), 2 * (n - 1) * n * s),
    ("all_gather", "bruck"): lambda n, s: (n * levels(n), levels(n), (n - 1) * s),
    ("all_gather", "ring"): lambda n, s: (n * (n - 1), n - 1, (n - 1) * s),
    ("all_gather", "recursive_doubling"): lambda n, s: (n * levels(n), levels(n), (n - 1) * s),
    ("reduce_scatter", "recursive_halving"): lambda n, s: (
        n * levels(n),
        levels(n),
        (n - 1) * s,
    ),
    ("reduce_scatter", "ring"): lambda n, s: (n * (n - 1), n - 1, (n - 1) * s),
    ("reduce_scatter", "pairwise"): lambda n, s: (n * (n - 1), n - 1, (n - 1) * s),
    ("scatter", "binomial_tree"): lambda n, s: (n - 1, levels(n), (n - 1) * s),
    ("scatter", "linear"): lambda n, s: (n - 1, n - 1, (n - 1) * s),
    ("gather", "binomial_tree"): lambda n, s: (n - 1, levels(n), (n - 1) * s),
    ("gather", "linear"): lambda n, s: (n - 1, n - 1, (n - 1) * s),
    ("all_to_all", "pairwise"): lambda n, s: (n * (n - 1), n - 1, (n - 1) * s),
    ("all_to_all", "bruck"): lambda n, s: (n * levels(n), levels(n), levels(n) * n * s // 2),
    ("all_to_all", "linear"): lambda n, s: (n * (n - 1), n - 1, (n - 1) * s),
    ("barrier", "dissemination"): lambda n, s: (n * levels(n), levels(n), 0),
    ("barrier", "linear"): lambda n, s: (2 * (n - 1), 2 * (n - 1), 0),
}

#: Those whose costs hold at every n.
AT_EVERY_SIZE = {
    *(one for one in EVERY if one[1] in ("linear", "ring", "pairwise", "chain", "dissemination")),
    ("broadcast", "binomial_tree"),
    ("reduce", "binomial_tree"),
    ("all_reduce", "reduce_broadcast"),
    ("all_gather", "bruck"),
}

#: Those whose messages are in each other's way: they take at least that long.
AT_LEAST = {("all_to_all", "linear")}


def once(collective, per):
    """A program that calls a collective once, on blocks of ``per`` numbers of 8 bytes."""

    def program():
        rank, n = dist.get_rank(), dist.get_world_size()
        whole, block = torch.zeros(n * per, dtype=torch.float64), torch.zeros(per).double()
        many = list(whole.split(per)) if rank == 0 else None
        calls = {
            "broadcast": lambda: dist.broadcast(whole, 0),
            "reduce": lambda: dist.reduce(whole, 0),
            "all_reduce": lambda: dist.all_reduce(whole),
            "all_gather": lambda: dist.all_gather_into_tensor(whole, block),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(block, whole),
            "scatter": lambda: dist.scatter(block, many, 0),
            "gather": lambda: dist.gather(block, many, 0),
            "all_to_all": lambda: dist.all_to_all_single(torch.empty_like(whole), whole),
            "barrier": lambda: dist.barrier(),
        }
        calls[collective]()

    return program


@pytest.mark.parametrize("collective, name", EVERY)
def test_time_and_messages_are_those_of_the_literature_exactly(collective, name):
    sizes = SIZES if (collective, name) in AT_EVERY_SIZE else (1, 2, 4, 8, 16)
    for n in (*sizes, 64):
        world = run(once(collective, 5), n, **{collective: name})
        messages, alphas, nbytes = COSTS[collective, name](n, 40)
        assert world.messages == messages, f"{n} ranks"
        ticks = alphas * A + nbytes * B
        exact = (collective, name) not in AT_LEAST
        assert world.now == ticks if exact else world.now >= ticks, f"{n} ranks"


def test_the_defaults_have_the_fewest_rounds_and_then_the_fewest_bytes():
    for collective, known in ALGORITHMS.items():
        fewest_bytes_first = collective in ("all_reduce", "all_to_all")

        def price(name, collective=collective, bytes_first=fewest_bytes_first):
            _, rounds, nbytes = COSTS[collective, name](64, 64)
            return (nbytes, rounds) if bytes_first else (rounds, nbytes)

        assert price(DEFAULTS[collective]) == min(map(price, known)), collective


def test_a_chain_is_a_pipeline():
    n, segments = 5, 6
    nbytes = segments << 16

    def program():
        dist.broadcast(torch.zeros(nbytes, dtype=torch.uint8), 0)

    world = run(program, n, broadcast="chain")
    assert world.now == (n + segments - 2) * (A + (1 << 16) * B)
    assert world.messages == (n - 1) * segments


def test_folding_costs_two_more_messages_of_the_pairs():
    world = run(once("all_reduce", 5), 6, all_reduce="recursive_doubling")
    assert world.now == 4 * (A + 6 * 40 * B)
    assert world.messages == 4 * 2 + 2 * 2


@pytest.mark.parametrize(
    "collective, name, messages",
    [
        ("broadcast", "binomial_tree", 4095),
        ("all_reduce", "recursive_doubling", 4096 * 12),
        ("all_reduce", "rabenseifner", 4096 * 24),
        ("barrier", "dissemination", 4096 * 12),
    ],
)
@pytest.mark.exhaustive
def test_thousands_of_ranks(collective, name, messages):
    assert run(once(collective, 1), 4096, **{collective: name}).messages == messages


# Beside other communication. --------------------------------------------------------


def test_messages_of_the_program_are_never_those_of_a_collective():
    def program():
        rank, n = dist.get_rank(), dist.get_world_size()
        x, got, anything = torch.full((1,), float(rank)), torch.empty(1), torch.empty(1)
        if rank == 1:
            wild = dist.irecv(anything)
        request = dist.isend(torch.tensor([100.0 + rank]), (rank + 1) % n)
        pending = dist.irecv(got, (rank - 1) % n) if rank != 1 else wild
        dist.all_reduce(x)
        pending.wait()
        request.wait()
        return x.item(), (anything if rank == 1 else got).item()

    assert values(run(program, 3)) == [(3.0, 102.0), (3.0, 100.0), (3.0, 101.0)]


def test_a_collective_goes_on_beside_its_rank():
    def program():
        rank = dist.get_rank()
        x, y = torch.ones(2), torch.full((1,), float(rank))
        first = dist.all_reduce(x, async_op=True)
        assert not first.is_completed()
        if rank == 0:
            dist.send(torch.zeros(1), 1)  # before anything of the second can begin there
        elif rank == 1:
            dist.recv(torch.empty(1), 0)
        second = dist.all_reduce(y, async_op=True)
        dist.barrier()  # called after both, so done after both
        assert first.is_completed()
        assert second.is_success()
        assert second.wait()
        assert first.wait()
        assert first.result()[0] is x
        return x.tolist(), y.item()

    assert values(run(program, 3)) == [([3.0, 3.0], 3.0)] * 3


def test_all_ranks_may_ask_whether_it_is_done():
    def program():
        x = torch.ones(1)
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            pass
        return x.item()

    assert values(run(program, 5)) == [5.0] * 5


def test_an_asynchronous_collective_shares_the_ports_of_its_rank():
    def program():
        rank, big = dist.get_rank(), torch.zeros(1000)
        work = dist.broadcast(big, 0, async_op=True)
        if rank == 0:
            dist.send(big, 1)
        else:
            dist.recv(torch.empty(1000), 0)
        work.wait()

    assert run(program, 2).now == 2 * (A + 4000 * B)


def test_works_that_nobody_waits_for_are_done_all_the_same():
    def program():
        tensors = [torch.ones(1) for _ in range(20)]
        for tensor in tensors:
            dist.all_reduce(tensor, async_op=True)
        return tensors

    world = run(program, 3)
    assert all(tensor.item() == 3 for rank in world.ranks for tensor in rank.value)


def test_ranks_may_make_their_own_groups_alone():
    def program():
        rank, seen = dist.get_rank(), []
        for members in ([0, 1, 2], [rank], [0, 1, 2]):  # rank 3 makes its own only
            group = dist.new_group(members, use_local_synchronization=True)
            if group is not None:
                x = torch.tensor([rank + 1])
                dist.all_reduce(x, group=group)
                seen.append(x.item())
        return seen

    assert values(run(program, 4)) == [[6, 1, 6], [6, 2, 6], [6, 3, 6], [4]]


def test_groups_have_collectives_of_their_own():
    def program():
        rank = dist.get_rank()
        evens, odds = dist.new_group([0, 2, 4]), dist.new_group([1, 3])
        mine, everybody = odds if rank % 2 else evens, torch.full((1,), float(rank))
        x = everybody.clone()
        work = dist.all_reduce(x, group=mine, async_op=True)
        dist.all_reduce(everybody)
        work.wait()
        y = torch.full((1,), float(rank))
        dist.broadcast(y, 3 if rank % 2 else 4, group=mine)
        return x.item(), everybody.item(), y.item()

    assert values(run(program, 5)) == [
        (4.0, 10.0, 3.0) if rank % 2 else (6.0, 10.0, 4.0) for rank in range(5)
    ]


# Mistakes. --------------------------------------------------------------------------


def simulated_answer(function, size, allowed=None, **algorithms):
    job = Job("answer", ((),) * size, seconds=30.0, allowed=allowed)
    program, cluster = live_program(function), Flat()
    return simulate(default_launcher(), program, job, cluster, algorithms=algorithms)


def different_collectives():
    if dist.get_rank():
        dist.broadcast(torch.ones(2), 0)
    else:
        dist.all_reduce(torch.ones(2))


def different_roots():
    dist.broadcast(torch.ones(2), dist.get_rank())


def different_reductions():
    dist.all_reduce(torch.ones(2), dist.ReduceOp.MAX if dist.get_rank() else dist.ReduceOp.SUM)


def different_sizes():
    dist.all_reduce(torch.ones(2 + dist.get_rank()))


def different_dtypes():
    dist.broadcast(torch.ones(2, dtype=torch.float64 if dist.get_rank() else torch.float32), 0)


def one_is_missing():
    if dist.get_rank():
        dist.barrier()


def one_receives_instead():
    if dist.get_rank():
        dist.all_reduce(torch.ones(2))
    else:
        dist.recv(torch.ones(2), 1)


def one_is_missing_in_a_group():
    group = dist.new_group([0, 2])
    if dist.get_rank() == 2:
        dist.all_reduce(torch.ones(1), group=group)


def forbidden():
    dist.all_reduce(torch.ones(2))


@pytest.mark.parametrize(
    "program, diagnosis",
    [
        (different_collectives, Diagnosis.ORDER_MISMATCH),
        (different_roots, Diagnosis.ORDER_MISMATCH),
        (different_reductions, Diagnosis.ORDER_MISMATCH),
        (different_sizes, Diagnosis.SIZE_MISMATCH),
        (different_dtypes, Diagnosis.DTYPE_MISMATCH),
        (one_is_missing, Diagnosis.DEADLOCK),
        (one_receives_instead, Diagnosis.DEADLOCK),
        (one_is_missing_in_a_group, Diagnosis.DEADLOCK),
    ],
)
def test_mistakes_are_told_as_in_a_real_world(program, diagnosis):
    program.__name__ = "answer"
    real = play(program, 3, allowed=None).failure
    failure = simulated_answer(program, 3).failure
    assert failure.diagnosis is real.diagnosis is diagnosis
    assert failure.message == real.message
    assert (failure.rank, failure.site, failure.detail) == (real.rank, real.site, real.detail)


@pytest.mark.parametrize("allowed", [frozenset(), frozenset({"barrier", "broadcast"})])
def test_what_is_forbidden_is_refused_as_in_a_real_world(allowed):
    def answer():
        try:
            forbidden()
        except RuntimeError:
            return 0

    for program in (forbidden, answer):
        program.__name__ = "answer"
        real = play(program, 2, allowed=allowed).failure
        failure = simulated_answer(program, 2, allowed).failure
        assert failure.diagnosis is real.diagnosis is Diagnosis.FORBIDDEN_CALL
        assert failure.message == real.message


def test_a_mismatch_is_told_although_the_answer_catches_it():
    def answer():
        try:
            different_collectives()
        except RuntimeError:
            dist.all_reduce(torch.ones(2))

    failure = simulated_answer(answer, 2).failure
    assert failure.diagnosis is Diagnosis.ORDER_MISMATCH
    assert "rank 0 calls all_reduce (SUM)" in failure.message
    assert "rank 1 calls broadcast (root 0)" in failure.message


def test_blocks_that_do_not_fit_are_told():
    def answer():
        parts = [torch.ones(1 + dist.get_rank()) for _ in range(2)]
        dist.all_to_all([part.clone() for part in parts], parts)

    failure = simulated_answer(answer, 2).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH
    assert "all_to_all of 1 float32 element per rank on rank 0 (line " in failure.message
    assert ", of 2 float32 elements per rank on rank 1 (line " in failure.message


def test_an_asynchronous_collective_that_some_never_call():
    def answer():
        if dist.get_rank() != 1:
            work = dist.all_reduce(torch.ones(1), async_op=True)
            work.wait()

    failure = simulated_answer(answer, 3).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert "ranks 0 and 2 wait in all_reduce at" in failure.message
    assert "for rank 1" in failure.message


def test_blocks_that_do_not_fit_are_told_beside_a_rank_too():
    def answer():
        parts = [torch.ones(1 + dist.get_rank()) for _ in range(2)]
        work = dist.all_to_all([part.clone() for part in parts], parts, async_op=True)
        work.wait()

    failure = simulated_answer(answer, 2).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH
    assert failure.site.line == line_in(answer, "dist.all_to_all")


@pytest.mark.parametrize("odd", ["size", "dtype"])
def test_a_gather_that_differs_on_one_rank_is_told_against_the_root(odd):
    def answer():
        me = dist.get_rank()
        x = torch.ones(3 if me == 2 and odd == "size" else 2)
        x = x.int() if me == 2 and odd == "dtype" else x
        into = [torch.empty(2) for _ in range(4)] if me == 1 else None
        dist.gather(x, into, 1)

    failure = simulated_answer(answer, 4).failure
    assert failure.diagnosis == f"{odd}_mismatch"
    assert "gather of 2 float32 elements per rank on rank 1 (line " in failure.message
    what = "3 float32" if odd == "size" else "2 int32"
    assert f", of {what} elements per rank on rank 2 (line " in failure.message


def test_split_sizes_that_differ_are_told_with_both_numbers():
    def answer():
        sent, received = ([1, 2], [1, 2]) if dist.get_rank() == 0 else ([1, 2], [2, 2])
        dist.all_to_all_single(torch.empty(sum(received)), torch.ones(3), received, sent)

    failure = simulated_answer(answer, 2).failure
    assert failure.diagnosis is Diagnosis.SIZE_MISMATCH
    assert "rank 1 gives 1 float32 element to rank 0 (line " in failure.message
    assert "and rank 0 takes 2 float32 elements from rank 1 (line " in failure.message


def test_who_asks_for_ever_is_told():
    def answer():
        if dist.get_rank() != 1:
            work = dist.all_reduce(torch.ones(1), async_op=True)
            while not work.is_completed():
                pass

    failure = simulated_answer(answer, 3).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert "ranks 0 and 2 wait in all_reduce at" in failure.message


def test_a_deadlock_of_many_is_told_briefly():
    def answer():
        if dist.get_rank() == 0:
            dist.barrier()

    failure = simulated_answer(answer, 1000).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert "for ranks 1-999; but ranks 1-999 have" in failure.message
    assert len(failure.message) < 1000


@pytest.mark.parametrize(
    "program, message",
    [
        (lambda: dist.all_reduce(torch.ones(1, dtype=torch.int16)), "not int16"),
        (lambda: dist.all_reduce(torch.ones(4, 4).t()[1:]), "contiguous"),
        (lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND), "BAND is for integers"),
        (lambda: dist.all_reduce(torch.ones(2).long(), dist.ReduceOp.AVG), "use SUM and divide"),
        (
            lambda: dist.all_reduce(torch.ones(2), torch.distributed._make_nccl_premul_sum(2.0)),
            "no reduction PREMUL_SUM here; there are SUM, AVG",
        ),
        (lambda: dist.all_gather([torch.ones(1)], torch.ones(1)), "a group of 2 ranks needs 2"),
        (lambda: dist.all_gather([torch.ones(1)] * 2, torch.ones(2)), "tensors of one size here"),
        (lambda: dist.all_gather_into_tensor(torch.ones(3), torch.ones(2)), "no multiple"),
        (lambda: dist.all_gather_into_tensor(torch.ones(8), torch.ones(2, 2)), r"shape \(4, 2\)"),
        (lambda: dist.reduce_scatter_tensor(torch.ones(2), torch.ones(3)), "no multiple"),
        (lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3)), "give split sizes"),
        (lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3), [1, 2], [1, 1]), "the sum 3"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(program, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        run(program, 2)


def test_split_sizes_in_a_tensor_are_refused_as_torch_does():
    even = torch.tensor([2, 2])
    with pytest.raises(TypeError, match="are a tensor; they have to be a list of whole numbers"):
        run(lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), even, even), 2)


def test_what_there_is_not_is_refused_with_what_to_call_instead():
    def coalesced():
        with dist._coalescing_manager(async_ops=False):
            dist.all_reduce(torch.ones(1))

    for program in (lambda: dist.all_reduce_coalesced([torch.ones(1)]), coalesced):
        with pytest.raises(RuntimeError, match="the operations one by one"):
            run(program, 2)


def test_every_method_of_a_recording_group_is_here_or_refused():
    def program():
        group = dist.group.WORLD
        return [name for name in COLLECTIVES if name not in vars_of(type(group))]

    assert values(run(program, 1)) == [[]]


def vars_of(kind):
    """What a class and its bases define in Python."""
    return {
        name for base in kind.__mro__ if base.__module__[:9] == "headcount" for name in vars(base)
    }


# Names. -----------------------------------------------------------------------------


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(RequestError, match=r"no collective 'allreduce'.*broadcast, reduce"):
        choose({"allreduce": "ring"})
    with pytest.raises(RequestError, match=r"all_reduce has no algorithm 'star'.*ring"):
        simulated_answer(forbidden, 2, all_reduce="star")


def test_an_algorithm_is_chosen_by_name():
    def answer():
        dist.all_reduce(torch.ones(8))

    assert simulated_answer(answer, 4, all_reduce="linear").messages == 2 * 3
    assert simulated_answer(answer, 4).messages == COSTS["all_reduce", "rabenseifner"](4, 1)[0]


def test_what_is_known_has_costs_and_a_source():
    assert set(COSTS) == set(EVERY)
    used = {one.source for known in ALGORITHMS.values() for one in known.values()}
    assert used - {"—"} == set(SOURCES)
    assert set(DEFAULTS) == set(COLLECTIVES.values())
