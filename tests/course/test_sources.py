"""What the course teaches, number by number: every worked example run, every common error refuted.

The chapters show the same to a reader.  Here the examples are on real ranks, one world for all
examples of a size; what grows with the number of ranks is on simulated ones.
"""

from __future__ import annotations

import ast
import inspect
import re
import time
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from grader.api.simulate import simulate
from grader.course import costs, sizes
from grader.course.bench.command import GIGA
from grader.exercise.cases import OPS, reduced
from headcount.core.values import tag_of, tagged
from headcount.core.verdict import Diagnosis
from support.worlds import line_in, play

CHAPTERS = Path(__file__).resolve().parents[2] / "solutions"


def ring(x, offset=0):
    """x becomes the sum over ranks; what this rank sent, step by step."""
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks, sent = x.tensor_split(n), []
    for step in range(2 * (n - 1)):
        replacing, s = divmod(step, n - 1)
        out = (rank - s - 1 + replacing + offset) % n
        mine = chunks[(out - 1) % n]
        came = torch.empty_like(mine)
        sent.append(chunks[out].clone())
        request = dist.isend(chunks[out], (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        mine.copy_(came if replacing else mine + came)
    return sent


def names(tensor):
    """What the numbers of a tensor are made of, each name once: ``A1+C1``."""
    return " ".join(dict.fromkeys(str(tag_of(value)) for value in tensor.flatten().tolist()))


def of_ranks(outcome, key):
    """What every rank found under this name."""
    assert outcome.failure is None, outcome.failure
    return [result.value[key] for result in outcome.results]


def sent_in_phases(trace):
    """Elements that rank 0 sent in each half of its messages."""
    counts = [message.count for message in trace.messages if message.source == 0]
    return sum(counts[: len(counts) // 2]), sum(counts[len(counts) // 2 :])


# Three ranks. ---------------------------------------------------------------------


def three_ranks(letters):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = torch.full((5,), rank + 1)

    def room():
        return [torch.zeros_like(mine) for _ in range(n)]

    spread = torch.arange(1, 6) if rank == 0 else torch.zeros(5, dtype=torch.int64)
    dist.broadcast(spread, 0)
    total, everywhere, out = mine.clone(), mine.clone(), torch.zeros_like(mine)
    dist.reduce(total, 0)
    dist.all_reduce(everywhere)
    gathered = room() if rank == 0 else None
    dist.gather(mine, gathered, 0)
    all_gathered = room()
    dist.all_gather(all_gathered, mine)
    dist.scatter(out, [torch.full((5,), i) for i in (1, 2, 3)] if rank == 0 else None, 0)
    base = torch.tensor([rank + 1, 2 * (rank + 1)])
    powers = torch.zeros_like(base)
    dist.reduce_scatter(powers, [base ** (j + 1) for j in range(n)])
    x = letters[rank].clone()
    sent = ring(x)
    return {
        "broadcast": spread,
        "reduce": total,
        "all-reduce": everywhere,
        "gather": gathered,
        "all-gather": all_gathered,
        "scatter": out,
        "powers": powers,
        "sent": sent,
        "summed": x,
    }


@pytest.fixture(scope="module")
def three():
    letters = [tagged(r, [0, 0, 1, 1, 2, 2]) for r in range(3)]  # six elements, three chunks
    return play(three_ranks, 3, letters, allowed=None)


def test_three_ranks_hold_five_numbers_of_rank_plus_one(three):
    lists = [[1] * 5, [2] * 5, [3] * 5]
    assert all(x.tolist() == [1, 2, 3, 4, 5] for x in of_ranks(three, "broadcast"))
    assert of_ranks(three, "reduce")[0].tolist() == [6] * 5
    assert all(x.tolist() == [6] * 5 for x in of_ranks(three, "all-reduce"))
    first, *others = of_ranks(three, "gather")
    assert [x.tolist() for x in first] == lists
    assert others == [None, None]
    assert all([x.tolist() for x in found] == lists for found in of_ranks(three, "all-gather"))
    assert [x.tolist() for x in of_ranks(three, "scatter")] == lists


def test_reduce_scatter_of_powers(three):
    assert [x.tolist() for x in of_ranks(three, "powers")] == [[6, 12], [14, 56], [36, 288]]


def test_reduce_leaves_the_other_ranks_something_else(three):
    """Not their own tensors, as is often said: gloo keeps partial sums there."""
    _, *others = of_ranks(three, "reduce")
    assert any(x.tolist() != [rank] * 5 for rank, x in enumerate(others, 2))


def test_the_ring_of_three_step_by_step(three):
    steps = zip(*of_ranks(three, "sent"), strict=True)
    assert [[names(chunk) for chunk in step] for step in steps] == [
        ["A2", "B0", "C1"],
        ["A1+C1", "A2+B2", "B0+C0"],
        ["A0+B0+C0", "A1+B1+C1", "A2+B2+C2"],  # rank r owns chunk r, and sends it first
        ["A2+B2+C2", "A0+B0+C0", "A1+B1+C1"],
    ]
    assert {names(x) for x in of_ranks(three, "summed")} == {"A0+B0+C0 A1+B1+C1 A2+B2+C2"}
    assert three.trace.traffic.rounds == three.trace.traffic.messages // 3 == 2 * (3 - 1)
    assert three.trace.stranger_count == 0
    assert {message.count for message in three.trace.messages} == {6 // 3}


# Four ranks. ----------------------------------------------------------------------


def broadcast_by_hand(x, root):
    for other in range(dist.get_world_size()):
        if root == dist.get_rank() != other:
            dist.send(x, other)
    if root != dist.get_rank():
        dist.recv(x, root)


def reduce_by_hand(x, root):
    if root != dist.get_rank():
        dist.send(x, root)
        return
    for other in range(dist.get_world_size()):
        came = torch.empty_like(x)
        if other != root:
            dist.recv(came, other)
            x += came


def scatter_by_hand(out, chunks, root):
    if root != dist.get_rank():
        dist.recv(out, root)
        return
    for other, chunk in enumerate(chunks):
        if other == root:
            out.copy_(chunk)
        else:
            dist.send(chunk, other)


def gather_by_hand(x, root):
    if root != dist.get_rank():
        dist.send(x, root)
        return None
    parts = [x.clone() for _ in range(dist.get_world_size())]
    for other, part in enumerate(parts):
        if other != root:
            dist.recv(part, other)
    return parts


def all_reduce_by_hand(x, root):
    reduce_by_hand(x, root)
    broadcast_by_hand(x, root)


def eight_collectives(x, root):
    """What each of them leaves a rank that holds x, which is n pieces of one number."""
    rank = dist.get_rank()
    pieces, piece = list(x.split(1)), x[rank : rank + 1]

    found = {name: x.clone() for name in ("broadcast", "reduce", "all-reduce")}
    dist.broadcast(found["broadcast"], root)
    dist.reduce(found["reduce"], root)
    dist.all_reduce(found["all-reduce"])
    for name in ("scatter", "reduce-scatter"):
        found[name] = torch.empty_like(piece)
    dist.scatter(found["scatter"], pieces if rank == root else None, root)
    dist.reduce_scatter(found["reduce-scatter"], pieces)
    for name in ("gather", "all-gather", "all-to-all"):
        found[name] = torch.empty_like(x)
    dist.gather(piece, list(found["gather"].split(1)) if rank == root else None, root)
    dist.all_gather(list(found["all-gather"].split(1)), piece)
    dist.all_to_all_single(found["all-to-all"], x)
    for name in ("reduce", "gather"):  # what the others hold now is nobody's business
        found[name] = found[name] if rank == root else found[name][:0]
    return found


def four_ranks(letters, left, right):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = torch.full((2,), rank + 1)
    found = {"eight": eight_collectives(letters[rank], 1)}

    # each holds [i + 1, i + 1]
    total, spread = mine.clone(), mine.clone()
    lists = [torch.empty_like(mine) for _ in range(n)]
    dist.all_reduce(total)
    dist.broadcast(spread, 0)
    dist.all_gather(lists, mine)
    found |= {"SUM": total, "AVG": total / n, "broadcast": spread, "all-gather": lists}

    # the identity
    x = torch.arange(4) + rank
    part, whole, at_once = torch.empty_like(x[:1]), torch.empty_like(x), x.clone()
    dist.reduce_scatter_tensor(part, x)
    dist.all_gather_into_tensor(whole, part)
    dist.all_reduce(at_once)
    found |= {"part": part, "whole": whole, "at once": at_once}

    # two elements do not split over four ranks, four do
    for length in (2, 4):
        x, piece = torch.full((length,), rank + 1.0), torch.zeros(1)
        try:
            dist.reduce_scatter_tensor(piece, x)
            found[f"of {length}"] = piece.item()
        except RuntimeError:
            found[f"of {length}"] = "refused"

    # n ranks with k elements are n·k, wherever they are gathered
    for k in (1, 4):
        room = [torch.empty(k) for _ in range(n)] if rank == 0 else None
        dist.gather(torch.full((k,), float(rank)), room, 0)
        found[f"gathered {k}"] = torch.cat(room) if room else None

    try:
        dist.send(mine, rank)
        found["to oneself"] = "sent"
    except ValueError as error:
        found["to oneself"] = str(error)

    # what a product needs, if its cube is cut along each of its axes
    rows = left.tensor_split(n, 0)[rank] @ right
    columns = left @ right.tensor_split(n, 1)[rank]
    term = left.tensor_split(n, 1)[rank] @ right.tensor_split(n, 0)[rank]
    parts = [torch.empty_like(columns) for _ in range(n)]
    dist.all_gather(parts, columns)
    dist.all_reduce(term)
    found |= {"along m": rows, "along n": torch.cat(parts, 1), "along k": term}

    # rooted ones, made of messages
    by_hand = [mine.clone() for _ in range(4)]
    broadcast_by_hand(by_hand[0], 2)
    reduce_by_hand(by_hand[1], 2)
    scatter_by_hand(by_hand[2], lists if rank == 2 else None, 2)
    all_reduce_by_hand(by_hand[3], 2)
    return found | {"by hand": by_hand, "gathered by hand": gather_by_hand(mine, 2)}


LEFT = torch.arange(48).view(6, 8) % 7 - 3
RIGHT = torch.arange(96).view(8, 12) % 5 - 2


@pytest.fixture(scope="module")
def four():
    letters = [tagged(r, range(4)) for r in range(4)]
    return play(four_ranks, 4, letters, LEFT, RIGHT, allowed=None)


def test_four_ranks_hold_i_plus_one_twice(four):
    for rank in range(4):
        assert of_ranks(four, "SUM")[rank].tolist() == [10, 10]
        assert of_ranks(four, "AVG")[rank].tolist() == [2.5, 2.5]
        assert of_ranks(four, "broadcast")[rank].tolist() == [1, 1]
        lists = [x.tolist() for x in of_ranks(four, "all-gather")[rank]]
        assert lists == [[1, 1], [2, 2], [3, 3], [4, 4]]


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(four):
    assert [x.item() for x in of_ranks(four, "part")] == [6, 10, 14, 18]
    assert all(x.tolist() == [6, 10, 14, 18] for x in of_ranks(four, "whole"))
    assert all(x.tolist() == [6, 10, 14, 18] for x in of_ranks(four, "at once"))


def test_two_elements_are_no_four_chunks_and_a_sum_is_no_mean(four):
    """An example that is printed: [1, 1] to [4, 4], reduce-scattered with SUM, give [2.5] each."""
    assert [len(piece) for piece in torch.empty(2).tensor_split(4)] == [1, 1, 0, 0]
    assert of_ranks(four, "of 2") == ["refused"] * 4
    assert of_ranks(four, "of 4") == [10.0] * 4
    values = [torch.tensor([rank + 1.0]) for rank in range(4)]
    assert reduced(OPS["AVG"], values).item() == 2.5


def test_gathering_one_number_from_each_of_four_gives_four(four):
    """Each rank holds [r], it is said, and then there are four numbers from each."""
    first, *others = of_ranks(four, "gathered 1")
    assert first.tolist() == [0, 1, 2, 3]
    assert others == [None] * 3
    assert of_ranks(four, "gathered 4")[0].numel() == 16


def test_nobody_sends_to_itself(four):
    """As in the scatter of some notes, whose root is served like everybody else."""
    assert all("cannot talk to itself" in told for told in of_ranks(four, "to oneself"))


def test_each_cut_of_the_cube_asks_for_its_collective(four):
    whole = LEFT @ RIGHT
    assert torch.equal(torch.cat(of_ranks(four, "along m")), whole)  # nothing was sent
    assert all(torch.equal(y, whole) for y in of_ranks(four, "along n"))  # an all-gather
    assert all(torch.equal(y, whole) for y in of_ranks(four, "along k"))  # an all-reduce


def test_rooted_collectives_are_sends_and_receives(four):
    for rank, (spread, total, piece, everywhere) in enumerate(of_ranks(four, "by hand")):
        assert spread.tolist() == [3, 3]
        assert total.tolist() == ([10, 10] if rank == 2 else [rank + 1] * 2)
        assert piece.tolist() == [rank + 1] * 2
        assert everywhere.tolist() == [10, 10]
    gathered = of_ranks(four, "gathered by hand")
    assert gathered[:2] + gathered[3:] == [None] * 3
    assert [x.tolist() for x in gathered[2]] == [[1, 1], [2, 2], [3, 3], [4, 4]]
    # n − 1 messages each, and a reduce and a broadcast for an all-reduce
    lines = Counter(message.site.line for message in four.trace.messages)
    rooted = (broadcast_by_hand, reduce_by_hand, scatter_by_hand, gather_by_hand)
    found = {function.__name__: lines[line_in(function, "dist.send(")] for function in rooted}
    assert found == {
        "broadcast_by_hand": 2 * 3,
        "reduce_by_hand": 2 * 3,
        "scatter_by_hand": 3,
        "gather_by_hand": 3,
    }


def test_the_map_of_the_course_says_what_each_collective_does(four):
    """The table of chapter 00, by what went into each number that the ranks end with."""
    source = (CHAPTERS / "00_ranks_and_groups.py").read_text()
    rows = re.findall(
        r"^# \| ([a-z-]+) \| (.*?) \| (.*?) \| (yes|no) \| (yes|no) \| .+ \|$", source, re.M
    )
    assert len(rows) == 8
    for name, before, after, combines, copies in rows:
        found = [[tag_of(v) for v in eight[name].tolist()] for eight in of_ranks(four, "eight")]
        tags = [tag for of_rank in found for tag in of_rank]
        assert None not in tags
        assert (combines == "yes") == any(len(tag.owners) > 1 for tag in tags), name
        assert (copies == "yes") == (len(set(tags)) < len(tags)), name
        ended = [rank for rank, of_rank in enumerate(found) if of_rank]
        assert ended == ([1] if after.startswith("one rank") else [0, 1, 2, 3]), name
        pieces = {len(found[rank]) for rank in ended}
        assert pieces == ({1} if re.match("rank r has (piece r|the sum)", after) else {4}), name
        began = {owner for tag in tags for owner in tag.owners}
        assert began == ({1} if before.startswith("one rank") else {0, 1, 2, 3}), name


# What chapters 00 to 04 say of messages, trees and operations. --------------------


def test_years_of_one_gpu_and_bytes_of_the_weights():
    """The arithmetic behind the numbers that chapter 00 opens with."""
    assert 405e9 * 2 == 810e9
    assert round(3.8e25 / 400e12 / (365 * 86400), -3) == 3000


def in_flight(tags):
    if dist.get_rank() == 0:
        for request in [dist.isend(torch.tensor([tag]), 1, tag=tag) for tag in (10, 20, 30)]:
            request.wait()
        for request in [dist.isend(torch.tensor([value]), 1) for value in (10, 20, 30)]:
            request.wait()
        return None
    y, got = torch.empty(1, dtype=torch.int64), []
    for tag in (*tags, 0, 0, 0):
        dist.recv(y, 0, tag=tag)
        got.append(y.item())
    return torch.tensor(got)


def test_messages_of_one_tag_do_not_overtake_and_a_tag_picks_its_own():
    outcome = play(in_flight, 2, [30, 10, 20])
    assert outcome.failure is None
    assert outcome.results[1].value.tolist() == [30, 10, 20, 10, 20, 30]


def test_send_refuses_the_rank_itself_and_isend_leaves_it_to_gloo():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(ValueError, match="should not be the same"):
            dist.send(torch.ones(1), 0)
        with pytest.raises(RuntimeError):
            dist.isend(torch.ones(1), 0)
    finally:
        dist.destroy_process_group()


def into_a_parameter():
    rank, found = dist.get_rank(), []
    for way in ("broadcast", "receive"):
        weight = torch.nn.Parameter(torch.full((2,), float(rank)))
        if way == "broadcast":
            dist.broadcast(weight, 0)
        elif rank == 0:
            dist.send(weight.detach(), 1)
        else:
            dist.recv(weight, 0)
        found.append(weight.detach().clone())
    return found


def test_messages_are_written_into_parameters_past_autograd():
    """Without no_grad, which copy_ asks for."""
    outcome = play(into_a_parameter, 2, allowed=None)
    assert outcome.failure is None
    assert [x.tolist() for x in outcome.results[1].value] == [[0.0, 0.0]] * 2
    with pytest.raises(RuntimeError, match="leaf Variable"):
        torch.nn.Parameter(torch.ones(2)).copy_(torch.zeros(2))


def test_a_hang_of_plain_gloo_lasts_half_an_hour():
    assert dist.constants.default_pg_timeout == timedelta(minutes=30)


def solution(chapter, name):
    """A function of a solved chapter, as it stands there."""
    chapter_tree = ast.parse(next(CHAPTERS.glob(f"{chapter}_*.py")).read_text())
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    # it may call functions that the chapter gives
    chapter_tree.body = [node for node in chapter_tree.body if isinstance(node, kept)]
    space = {}
    exec(compile(chapter_tree, chapter, "exec"), space)
    return space[name]


def edges(trace):
    """Who sends to whom, for each round."""
    return [
        sorted((m.source, m.destination) for m in trace.messages if m.start == start)
        for start in range(trace.traffic.rounds)
    ]


def test_the_trees_of_the_pictures_are_those_of_the_solutions():
    """The broadcast doubles from the source; the reduce pairs neighbours first."""
    spread, collect = solution("02", "tree_broadcast"), solution("04", "tree_reduce")
    down = simulate(spread, 8, torch.ones(1), 0, alpha=1, beta=0, record=True).trace
    up = simulate(collect, 8, torch.ones(1), 0, OPS["SUM"], alpha=1, beta=0, record=True).trace
    assert edges(down) == [[(r, r + step) for r in range(step)] for step in (1, 2, 4)]
    assert edges(up) == [[(r + step, r) for r in range(0, 8, 2 * step)] for step in (1, 2, 4)]


def one_receives_first():
    rank, n = dist.get_rank(), dist.get_world_size()
    x, y = torch.ones(1), torch.empty(1)
    if rank == 0:
        dist.recv(y, n - 1)
        dist.send(x, 1)
    else:
        dist.send(x, (rank + 1) % n)
        dist.recv(y, rank - 1)


def test_a_ring_in_which_one_rank_receives_first_takes_a_round_for_each_message():
    assert simulate(one_receives_first, 3, alpha=1.0, beta=0.0).seconds == 3


def test_gathers_to_every_rank_send_as_many_messages_as_a_ring_in_more_rounds():
    gather = solution("03", "gather")

    def gather_everywhere():
        for dst in range(dist.get_world_size()):
            gather(torch.ones(1), dst)

    for n in (2, 3, 5):
        done = simulate(gather_everywhere, n, alpha=1.0, beta=0.0)
        assert done.messages == n * (n - 1)
        assert done.seconds > n - 1


def test_pairs_found_by_an_exclusive_or_all_meet_for_powers_of_two_only():
    for n in range(2, 65):
        apart = [(a, b) for a in range(n) for b in range(a) if a ^ b >= n]
        assert bool(apart) == bool(n & (n - 1))


def chain_of_pieces(x):
    rank, n, requests = dist.get_rank(), dist.get_world_size(), []
    for piece in x.tensor_split(100):
        if rank > 0:
            dist.recv(piece, rank - 1)
        if rank < n - 1:
            requests.append(dist.isend(piece, rank + 1))
    for request in requests:
        request.wait()


def broadcast_built_in(x):
    dist.broadcast(x, 0)


def test_rounds_are_not_seconds():
    """106 rounds of a chain beat the 3 of a tree for 100 MB, and not for 400 bytes."""
    alpha, beta = 10e-6, 1 / 10e9
    for elements, faster in ((100, broadcast_built_in), (25_000_000, chain_of_pieces)):
        x = torch.ones(elements)
        taken = {
            way: simulate(way, 8, x, alpha=alpha, beta=beta).seconds
            for way in (broadcast_built_in, chain_of_pieces)
        }
        assert min(taken, key=taken.__getitem__) is faster
        assert taken[broadcast_built_in] == pytest.approx(3 * (alpha + x.nbytes * beta))
        assert taken[chain_of_pieces] == pytest.approx(106 * (alpha + x.nbytes / 100 * beta))


def test_reduce_op_has_nine_names():
    text = next(CHAPTERS.glob("04_*.py")).read_text()
    table = set(re.findall(r"`([A-Z_]+)`", "\n".join(re.findall(r"^# \| `.*", text, re.M))))
    assert table == set(dist.ReduceOp.RedOpType.__members__)
    assert len(table) == 9


# The ring. ------------------------------------------------------------------------


def five_ranks(letters):
    x = letters[dist.get_rank()].clone()
    return {"sent": ring(x, 1), "summed": x}


def test_the_ring_of_five_has_another_offset():
    """Rank r sends chunk r first: chunk a is complete on rank 4, and b on rank 0."""
    outcome = play(five_ranks, 5, [tagged(r, range(5)) for r in range(5)])
    steps = list(zip(*of_ranks(outcome, "sent"), strict=True))
    assert [names(chunk) for chunk in steps[0]] == ["A0", "B1", "C2", "D3", "E4"]
    assert [names(chunk) for chunk in steps[4]] == [f"A…E{i}" for i in (1, 2, 3, 4, 0)]
    summed = {names(x) for x in of_ranks(outcome, "summed")}
    assert summed == {"A…E0 A…E1 A…E2 A…E3 A…E4"}
    assert outcome.trace.traffic.rounds == outcome.trace.traffic.messages // 5 == 2 * (5 - 1)
    assert outcome.trace.max_sent_elements == 2 * (5 - 1) * 5 // 5


def ring_without_rank_2():
    if dist.get_rank() != 2:
        ring(torch.ones(5))


def test_every_rank_of_a_ring_is_a_point_of_failure():
    failure = play(ring_without_rank_2, 5).failure
    assert failure.diagnosis is Diagnosis.DEADLOCK
    assert [wait.rank for wait in failure.waits] == [0, 1, 3, 4]


def ring_only(x):
    ring(x.clone())


@pytest.mark.parametrize("n", [2, 4, 8, 16, 1024])
def test_bruck_sends_more_chunks_in_fewer_rounds(n):
    """A chunk travels once for each bit of its distance; n is a power of two."""
    rounds = n.bit_length() - 1
    assert sum(distance.bit_count() for distance in range(n)) == n // 2 * rounds


@pytest.mark.parametrize("n", [2, 3, 5, 8, 28])
def test_a_ring_sends_twice_n_minus_one_nths(n):
    """Not "everything sent once and received once": with two ranks it is once K, and never 2K."""
    K = 840
    ran = simulate(ring_only, n, torch.ones(K), alpha=1.0, beta=0.0, record=True)
    trace = ran.trace
    assert sent_in_phases(trace) == ((n - 1) * K // n,) * 2  # each phase is half of it
    assert trace.max_sent_elements == 2 * (n - 1) * K // n < 2 * K
    assert trace.traffic.bytes == n * trace.max_sent_elements * 4  # even, and in float32
    assert trace.stranger_count == 0
    # the price: as many latencies as steps
    assert ran.seconds == trace.traffic.rounds == 2 * (n - 1)
    assert costs.factor("all_reduce", n) == pytest.approx(trace.max_sent_elements / K)


def test_volumes_are_counts_of_elements_until_they_are_multiplied():
    for dtype, each in ((torch.bfloat16, 2), (torch.float32, 4), (torch.float64, 8)):
        trace = simulate(ring_only, 4, torch.ones(840, dtype=dtype), record=True).trace
        assert trace.max_sent_elements == 2 * 3 * 840 // 4
        assert trace.traffic.max_sent == each * trace.max_sent_elements


def all_reduce(x):
    dist.all_reduce(x)


def test_a_tree_beats_a_ring_below_the_crossing():
    """Rings do not beat trees in general."""
    n, alpha, beta = 8, 1e-5, 1e-10
    crossing = costs.crossover_bytes(n, alpha, beta)
    for nbytes, faster in ((32, "tree"), (crossing / 2, "tree"), (2 * crossing, "ring")):
        x = torch.zeros(int(nbytes) // 32 * 8)  # whole chunks
        taken = {
            name: simulate(
                all_reduce, n, x, alpha=alpha, beta=beta, algorithms={"all_reduce": algorithm}
            ).seconds
            for name, algorithm in (("ring", "ring"), ("tree", "reduce_broadcast"))
        }
        assert min(taken, key=taken.__getitem__) == faster
        assert taken["ring"] == pytest.approx(
            costs.ring_all_reduce_seconds(n, x.nbytes, alpha, beta)
        )
        assert taken["tree"] == pytest.approx(
            costs.tree_all_reduce_seconds(n, x.nbytes, alpha, beta)
        )
    larger = [costs.crossover_bytes(ranks, alpha, beta) for ranks in (8, 64, 1024)]
    assert larger == sorted(set(larger))  # many ranks move it up


def test_chunk_may_give_too_few_pieces():
    assert [len(piece) for piece in torch.arange(9).chunk(4)] == [3, 3, 3]
    assert [len(piece) for piece in torch.arange(9).tensor_split(4)] == [3, 2, 2, 2]


def uneven_pieces(collective):
    pieces = [piece.clone() for piece in torch.arange(9).tensor_split(4)]
    mine = pieces[dist.get_rank()].clone()
    if collective == "reduce_scatter":
        dist.reduce_scatter(mine, pieces)
    else:
        dist.all_gather(pieces, mine)
    return mine.tolist()


def test_gloo_scatters_uneven_pieces_and_does_not_gather_them():
    outcome = play(uneven_pieces, 4, "reduce_scatter", allowed=None)
    assert outcome.failure is None
    assert [result.value for result in outcome.results] == [[0, 4, 8], [12, 16], [20, 24], [28, 32]]
    failure = play(uneven_pieces, 4, "all_gather", allowed=None).failure
    assert "needs tensors of one size" in failure.message


# A barrier. -----------------------------------------------------------------------


def cell(chapter, name):
    """A function of a chapter that is no exercise, as it stands there."""
    text = next(CHAPTERS.glob(f"{chapter}_*.py")).read_text()
    (source,) = re.findall(rf"^def {name}\(.*?(?=^\S)", text, re.M | re.S)
    space = {"torch": torch, "dist": dist}
    exec(source, space)
    return space[name]


def test_a_combining_tree_sends_as_few_messages_as_a_centre_in_fewer_rounds():
    tree, central = cell("09", "combining_tree"), cell("09", "central")
    for n in (4, 5, 8, 16):
        by_tree = simulate(tree, n, alpha=1.0, beta=0.0)
        by_centre = simulate(central, n, alpha=1.0, beta=0.0)
        assert by_tree.messages == by_centre.messages == 2 * (n - 1)
        assert by_centre.seconds == 2 * (n - 1)
        assert by_tree.seconds <= 2 * (n - 1).bit_length()


def load_of_cables(n, messages):
    """Messages of one piece on a ring that is wired one way: the pieces on each cable."""
    load = [0] * n
    for source, destination in messages:
        for hop in range((destination - source) % n):
            load[(source + hop) % n] += 1
    return load


def test_a_ring_loads_its_cables_least():
    ring_all_gather = solution("05", "ring_all_gather")
    for n in (3, 4, 8):
        x = torch.ones(1)
        trace = simulate(ring_all_gather, n, x, alpha=1.0, beta=0.0, record=True).trace
        around = [(message.source, message.destination) for message in trace.messages]
        everyone = [(a, b) for a in range(n) for b in range(n) if a != b]
        assert load_of_cables(n, around) == [n - 1] * n
        assert load_of_cables(n, everyone) == [n * (n - 1) // 2] * n


def sleep_then_meet():
    time.sleep(dist.get_rank())
    dist.barrier()
    return time.monotonic()


def test_everybody_leaves_a_barrier_when_the_last_has_come():
    """Rank r sleeps r seconds: with three ranks all leave after 2 s, on a clock without noise."""
    begun = simulate(time.monotonic, 1)[0]
    left = simulate(sleep_then_meet, 3, alpha=0.0, beta=0.0)
    assert [moment - begun for moment in left] == [2.0] * 3


# torch.scatter_reduce. ------------------------------------------------------------

INPUT = torch.tensor([1.0, 2.0, 3.0, 4.0])
INDEX = torch.tensor([0, 1, 0, 1, 2, 1])
SRC = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
SCATTER = partial(INPUT.scatter_reduce, 0, INDEX, SRC)


def test_scatter_reduce_by_hand():
    assert SCATTER("sum").tolist() == [1 + 1 + 3, 2 + 2 + 4 + 6, 3 + 5, 4] == [5, 14, 8, 4]
    means = SCATTER("mean").tolist()
    assert means == pytest.approx([5 / 3, 14 / 4, 8 / 2, 4 / 1])
    assert [round(mean, 4) for mean in means] == [1.6667, 3.5, 4, 4]
    # a place that nothing goes to keeps what it has
    assert SCATTER("sum", include_self=False).tolist() == [4, 12, 5, 4]
    assert SCATTER("mean", include_self=False).tolist() == [2, 4, 5, 4]


def test_an_assignment_loses_duplicates():
    out = INPUT.clone()
    out[INDEX] += SRC
    assert out.tolist() != SCATTER("sum").tolist()
    assert out[1].item() in (2 + 2, 2 + 4, 2 + 6)  # one of the three is left
    assert INPUT.index_add(0, INDEX, SRC).tolist() == SCATTER("sum").tolist()


def test_gradients_of_scatter_reduce():
    upstream, src = torch.tensor([1.0, 10.0, 100.0, 1000.0]), SRC.clone().requires_grad_()
    for reduction, shares in (("sum", [1, 1, 1, 1]), ("mean", [3, 4, 2, 1])):
        out = INPUT.scatter_reduce(0, INDEX, src, reduction)
        (gradient,) = torch.autograd.grad(out, src, upstream)
        assert torch.allclose(gradient, (upstream / torch.tensor(shares))[INDEX])


# Bandwidth. -----------------------------------------------------------------------


def test_factors_and_units():
    for n in (2, 4, 8):
        assert costs.factor("all_reduce", n) == 2 * (n - 1) / n
        for op in ("reduce_scatter", "all_gather", "all_to_all"):
            assert costs.factor(op, n) == (n - 1) / n
        for op in ("broadcast", "reduce", "send_recv"):
            assert costs.factor(op, n) == 1
    assert costs.algorithm_bandwidth(3 * 10**9, 2.0) == 1.5e9
    assert GIGA == 10**9  # and not 2**30
    assert list(costs.sweep(8, 200, 4)) == [8, 32, 128]  # even steps on a log scale
    # the full tensor is n times what one rank has of it
    assert costs.share("all_gather", 4096, 4, 4) == (4096 // 4 // 4, 4096)
    assert costs.share("all_reduce", 4096, 4, 4) == (4096 // 4, 4096)


def test_a_reduce_scatter_by_its_output_looks_n_times_too_slow():
    """A lecture prints 72 to 75 GB/s beside 272 to 278 for an all-reduce on the same links."""
    n, link, whole = 4, 275e9, 10**9
    seconds = whole * (n - 1) / n / link
    assert costs.bus_bandwidth("reduce_scatter", whole, seconds, n) == pytest.approx(link)
    by_output = costs.bus_bandwidth("reduce_scatter", whole // n, seconds, n)
    assert by_output == pytest.approx(link / n)
    assert {round(ring / half) for ring in (272, 278) for half in (72, 75)} == {n}


# Data parallel. -------------------------------------------------------------------


def test_ddps_buckets_have_25_mb():
    """Of 2²⁰ bytes each, 5 % more than 25 · 10⁶; the signature may leave it to be found later."""
    default = inspect.signature(DistributedDataParallel).parameters["bucket_cap_mb"].default
    assert default in (None, 25)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert DistributedDataParallel(torch.nn.Linear(2, 2)).bucket_bytes_cap == 25 * 2**20
    finally:
        dist.destroy_process_group()


def through_a_server(x):
    mean = x.clone()
    all_reduce_by_hand(mean, 0)


@pytest.mark.parametrize("n", [4, 16])
def test_a_servers_link_carries_what_a_ring_shares_out(n):
    sent = {}
    for way in (through_a_server, ring_only):
        counts = [0] * n
        for message in simulate(way, n, torch.ones(64), record=True).trace.messages:
            counts[message.source] += message.count
        sent[way] = counts
    assert sent[through_a_server] == [(n - 1) * 64] + [64] * (n - 1)
    assert sent[ring_only] == [2 * (n - 1) * 64 // n] * n
    assert sum(sent[through_a_server]) == sum(sent[ring_only])


# Scale. ---------------------------------------------------------------------------

H, F, B, E = 4096, 989e12, 50e9, 2


def test_parameters():
    qkv, output, gate_and_up, up, down = 3 * H**2, H**2, 8 * H**2, 4 * H**2, 4 * H**2
    gated, plain = (sizes.transformer_block_params(H, glu) for glu in (True, False))
    assert gated == qkv + output + gate_and_up + down == 16 * H**2
    assert plain == qkv + output + up + down == 12 * H**2
    model = partial(sizes.model_params, H, 2, 1000, True)
    assert model(True) == 2 * 16 * H**2 + 1000 * H
    assert model(False) == model(True) + 1000 * H
    assert model(True, 50) == model(True) + 50 * H


def test_operations_and_bytes():
    assert sizes.step_flops(10, 7) == 2 * 10 * 7 + 2 * (2 * 10 * 7)
    assert sizes.training_state_bytes(1) == 2 + 2 + 4 + 4 + 4 == 16
    # Adam's "6h²" is right in units of bfloat16 only
    optimizer = sizes.state_bytes(H**2).optimizer
    assert (optimizer, optimizer / 4, optimizer / 2) == (12 * H**2, 3 * H**2, 6 * H**2)


def test_a_bucket_in_data_parallelism():
    nbytes = 25 * 2**20
    for dp in (2, 8, 64):
        seconds = costs.ring_all_reduce_seconds(dp, nbytes, 0, 1 / B)
        assert seconds == pytest.approx(nbytes * 2 * (dp - 1) / (dp * B))


def test_ratios():
    seq, mbs, n, layers = 2048, 4, 8, 5
    zero3 = E / (2 * seq * mbs) * (n - 1) / n * F / B
    assert sizes.zero3_overlap_ratio(seq, mbs, n, F, B, E) == pytest.approx(zero3)
    tp = E * (n - 1) / (2 * H) * F / B
    assert sizes.tp_overlap_ratio(H, n, F, B, E) == pytest.approx(tp)
    pp = E * F / (32 * H * layers * B)
    assert sizes.pp_overlap_ratio(H, layers, F, B, E) == pytest.approx(pp)


def test_parameters_cancel_in_data_parallelism():
    """It is printed as params/(2·tokens)·…, which a larger model would make worse."""
    tokens, dp = 8192, 8
    ratio = sizes.dp_overlap_ratio(tokens, dp, F, B, E)
    assert ratio == pytest.approx(E / (2 * tokens) * (dp - 1) / dp * F / B)
    printed = []
    for params in (10**8, 10**11):
        sending = costs.ring_all_reduce_seconds(dp, E * params, 0, 1 / B)
        computing = sizes.step_flops(tokens, params) * 2 / 3 / F
        assert sending / computing == pytest.approx(ratio)
        printed.append(params / (2 * tokens) * (dp - 1) / dp * F / B)
    assert printed[1] / printed[0] == 1000
    assert min(printed) > 10**6 * ratio


def pipeline_step(micro_batches, alternate):
    """How many micro-batches a stage keeps at most; forward takes a second, backward two."""
    stage, stages = dist.get_rank(), dist.get_world_size()
    first = min(micro_batches, stages - stage) if alternate else micro_batches
    message, sent, kept, most = torch.zeros(1), [], 0, 0
    for turn in "F" * first + "BF" * (micro_batches - first) + "B" * first:
        way = 1 if turn == "F" else -1
        if 0 <= stage - way < stages:
            dist.recv(torch.empty(1), stage - way)
        time.sleep(1 if turn == "F" else 2)
        if 0 <= stage + way < stages:
            sent.append(dist.isend(message, stage + way))
        kept += way
        most = max(most, kept)
    for request in sent:
        request.wait()
    return most


@pytest.mark.parametrize("stages, m", [(4, 6), (4, 2), (5, 8), (2, 1)])
def test_both_orders_of_a_pipeline_have_one_bubble_and_1f1b_keeps_less(stages, m):
    """https://arxiv.org/abs/2104.04473, section 2.2."""
    for alternate in (False, True):
        done = simulate(pipeline_step, stages, m, alternate, alpha=0, beta=1e-12)
        assert done.seconds == pytest.approx(3 * (m + stages - 1))
        assert 1 - 3 * m / done.seconds == pytest.approx(sizes.bubble_share(stages, m))
        kept = [min(m, stages - stage) if alternate else m for stage in range(stages)]
        assert list(done) == kept


def gathered_product(in_pieces, seconds, mine):
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(n):
        moving, came = [], torch.empty_like(mine)
        if step < n - 1:
            moving = [dist.isend(mine, (rank + 1) % n), dist.irecv(came, (rank - 1) % n)]
        time.sleep(seconds / n if in_pieces else 0)
        for request in moving:
            request.wait()
        mine = came
    time.sleep(0 if in_pieces else seconds)


@pytest.mark.parametrize("hidden", [4096, 12288])
def test_tensor_parallelism_hides_nothing_unless_the_product_is_cut(hidden):
    """The product needs what is gathered (https://doi.org/10.1145/3567955.3567959)."""
    n, tokens, link = 4, 8, 450e9
    ratio = sizes.tp_overlap_ratio(hidden, n, F, link, E)
    product = 2 * tokens * hidden**2 / n / F
    shard = torch.ones(tokens // n, hidden, dtype=torch.bfloat16)
    whole, pieces = (
        simulate(gathered_product, n, cut, product, shard, alpha=0, beta=1 / link).seconds
        for cut in (False, True)
    )
    assert whole / product == pytest.approx(1 + ratio)
    assert pieces / product == pytest.approx(max(1, ratio + 1 / n))


def test_llama_65b_reached_half_of_the_peak():
    """Trained in about 21 days on 2048 A100s: https://arxiv.org/abs/2302.13971, section 2.4."""
    days = sizes.step_flops(1400 * 10**9, 65_285_660_672) / (2048 * 312e12) / 86400
    assert 0.45 < days / 21 < 0.5


def zero_3(weights):
    """The ring's halves that a step takes: two all-gathers, one reduce-scatter."""
    rank, n = dist.get_rank(), dist.get_world_size()
    for gathering in (True, True, False):
        chunks = weights.clone().tensor_split(n)
        for s in range(n - 1):
            out = (rank - s - (not gathering)) % n
            mine = chunks[(out - 1) % n]
            came = torch.empty_like(mine)
            request = dist.isend(chunks[out], (rank + 1) % n)
            dist.recv(came, (rank - 1) % n)
            request.wait()
            mine.copy_(came if gathering else mine + came)


def test_zero_3_sends_three_times_where_data_parallelism_sends_twice():
    n, params = 4, torch.ones(840)
    each = (n - 1) * 840 // n
    assert simulate(zero_3, n, params).trace.max_sent_elements == 3 * each
    assert simulate(ring_only, n, params).trace.max_sent_elements == 2 * each


def pipeline(activations, micro_batches):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    came = torch.empty_like(activations)
    for _ in range(micro_batches):  # activations forward
        if rank > 0:
            dist.recv(came, rank - 1)
        if rank < last:
            dist.send(activations, rank + 1)
    for _ in range(micro_batches):  # gradients backward
        if rank < last:
            dist.recv(came, rank + 1)
        if rank > 0:
            dist.send(activations, rank - 1)


def test_a_pipeline_sends_activations_and_gradients_at_every_boundary():
    seq, mbs, h, stages, micro_batches = 5, 2, 3, 4, 6
    trace = simulate(pipeline, stages, torch.ones(seq, mbs, h), micro_batches).trace
    assert {message.count for message in trace.messages} == {seq * mbs * h}
    ways = Counter((message.source, message.destination) for message in trace.messages)
    boundaries = [(stage, stage + 1) for stage in range(stages - 1)]
    assert ways == Counter({way: micro_batches for a, b in boundaries for way in ((a, b), (b, a))})
