"""Replays: tags that survive sums, films of real runs, the page and the picture."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from urllib.parse import unquote

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from grader.api import run
from grader.api.replay import WATCHED, Replay, replay
from grader.report.looks import Standing
from grader.report.replay import player, replay_page
from grader.report.rounds import BufferUpdate, film
from grader.report.strip import still, verdict_strip, wires
from headcount.core.errors import RequestError, RunFailed
from headcount.core.values import FEW_RANKS, MOST_RANKS, tag_of, tagged
from headcount.core.verdict import Diagnosis, Failure
from headcount.trace.trace import CallSpan, Trace
from support.worlds import line_in, play

# Tags. ----------------------------------------------------------------------------


@given(
    st.sampled_from([FEW_RANKS, MOST_RANKS]).flatmap(
        lambda ranks: st.tuples(
            st.just(ranks),
            # of many ranks each may go in up to three times
            st.lists(st.integers(0, ranks - 1), min_size=1, max_size=8).filter(
                lambda owners: ranks == FEW_RANKS or max(map(owners.count, owners)) <= 3
            ),
        )
    ),
    st.integers(0, 100),
)
def test_a_sum_of_tags_tells_its_terms(found, place):
    ranks, owners = found
    total = sum(tagged(rank, [place], ranks).item() for rank in owners)
    tag = tag_of(total, ranks)
    assert tag.owners == tuple(sorted(owners))
    assert tag.place == place


def test_the_whole_sum_of_sixteen_ranks_has_a_name():
    total = sum(tagged(rank, range(16), 16) for rank in range(16))
    assert [str(tag_of(value, 16)) for value in total.tolist()] == [f"A…R{i}" for i in range(16)]


@pytest.mark.parametrize("times", [4, 5, 16])
def test_of_sixteen_ranks_one_that_went_in_too_often_is_not_taken_for_another(times):
    assert tag_of(times * tagged(3, [2], 16).item(), 16) is None


def test_tags_read_like_the_cells_of_a_picture():
    a, b, c, d = (tagged(rank, range(4)) for rank in range(4))
    assert str(tag_of(a[2].item())) == "A2"
    assert str(tag_of((a + b)[0].item())) == "A0+B0"
    assert str(tag_of((a + b + c + d)[3].item())) == "A…D3"
    assert str(tag_of((a + a)[1].item())) == "A1+A1"
    assert str(tag_of((a[0] + b[1]).item())) == "A?+B?"
    assert str(tag_of((a[2] + 1).item())) == "A2+1"


@pytest.mark.parametrize("value", [0.0, -1.0, 0.5, float("nan"), float("inf"), 1e300, 2.0**60])
def test_other_numbers_are_no_tags(value):
    assert tag_of(value) is None


def test_there_are_tags_for_sixteen_ranks():
    with pytest.raises(ValueError, match="no tag for rank 16 of 17"):
        tagged(16, [0], 17)


# Films. ---------------------------------------------------------------------------


def _watched(function, n, *arguments):
    from grader.submission.submission import live_program
    from headcount.launch.launchers import default_launcher
    from headcount.launch.process_world import ProcessWorld
    from headcount.launch.world import Job

    columns = tuple(tuple(make(rank, n) for make in arguments) for rank in range(n))
    with ProcessWorld(default_launcher(), n, live_program(function)) as world:
        outcome = world.run(Job("answer", columns, allowed=None, watched=WATCHED))
    assert outcome.failure is None, outcome.failure
    return film(outcome.trace, "answer", tags=True, names=["x"])


def _x(rank, n):
    return tagged(rank, range(n))


def _ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = list(x.tensor_split(n))
    for step in range(1, n):
        request = dist.isend(chunks[(rank - step) % n], (rank + 1) % n)
        buffer = torch.empty_like(chunks[0])
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        chunks[(rank - step - 1) % n] += buffer
    for step in range(1, n):
        request = dist.isend(chunks[(rank - step + 1) % n], (rank + 1) % n)
        dist.recv(chunks[(rank - step) % n], (rank - 1) % n)
        request.wait()


def _texts(frame):
    return [[cell and cell.text for cell in column] for column in frame.cells]


def test_a_ring_is_followed_through_its_sums():
    shown = _watched(_ring, 3, _x)
    assert shown.rounds == 4
    assert shown.ring
    assert shown.headings == (("x", 3),)
    assert _texts(shown.frames[0]) == [["A0", "A1", "A2"], ["B0", "B1", "B2"], ["C0", "C1", "C2"]]
    first = {(a.source, a.destination): a.content.text for a in shown.frames[0].arrows}
    assert first == {(0, 1): "A2", (1, 2): "B0", (2, 0): "C1"}
    second = {(a.source, a.destination): a.content.text for a in shown.frames[1].arrows}
    assert second == {(0, 1): "A1+C1", (1, 2): "A2+B2", (2, 0): "B0+C0"}
    owned = [_texts(shown.frames[2])[rank][rank] for rank in range(3)]
    assert owned == ["A0+B0+C0", "A1+B1+C1", "A2+B2+C2"]
    assert _texts(shown.frames[-1]) == [["A0+B0+C0", "A1+B1+C1", "A2+B2+C2"]] * 3
    assert shown.frames[-1].arrows == ()


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_every_number_of_ranks_ends_with_every_owner(n):
    shown = _watched(_ring, n, _x)
    assert len(shown.frames) == 2 * (n - 1) + 1
    for column in shown.frames[-1].cells:
        assert [cell.owners for cell in column] == [tuple(range(n))] * n


def _gathered(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank:
        dist.send(x, 0)
        return None
    parts = [x.clone(), *(torch.empty_like(x) for _ in range(n - 1))]
    for src in range(1, n):
        dist.recv(parts[src], src)
    return parts


def test_a_returned_list_stands_below_the_argument():
    shown = _watched(_gathered, 3, lambda rank, n: tagged(rank, [0]))
    assert shown.headings == (("x", 1), ("result", 3))
    assert _texts(shown.frames[-1]) == [
        ["A0", "A0", "B0", "C0"],
        ["B0", None, None, None],
        ["C0", None, None, None],
    ]
    assert _texts(shown.frames[1])[0][2:] == ["B0", ""]
    arrow = shown.frames[0].arrows[0]
    assert (arrow.source, arrow.destination, arrow.leaves, arrow.enters) == (1, 0, 0, 2)


def test_a_mistake_is_seen_as_what_it_is():
    def answer(x):
        rank, n = dist.get_rank(), dist.get_world_size()
        request = dist.isend(x, (rank + 1) % n)
        buffer = torch.empty_like(x)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        x += buffer.roll(1)

    shown = _watched(answer, 2, _x)
    assert _texts(shown.frames[-1])[0] == ["A?+B?", "A?+B?"]


def test_the_table_names_every_round_and_the_end():
    table = _watched(_ring, 3, _x).table()
    assert table.splitlines() == [
        "reduce-scatter phase: each rank adds what it receives to its own",
        "round 1:  0→1 A2,  1→2 B0,  2→0 C1",
        "round 2:  0→1 A1+C1,  1→2 A2+B2,  2→0 B0+C0",
        "all-gather phase: each rank replaces its own data with what it receives",
        "round 3:  0→1 A0+B0+C0,  1→2 A1+B1+C1,  2→0 A2+B2+C2",
        "round 4:  0→1 A2+B2+C2,  1→2 A0+B0+C0,  2→0 A1+B1+C1",
        *(f"rank {rank} ends with  A0+B0+C0 A1+B1+C1 A2+B2+C2" for rank in range(3)),
    ]


# What a round does. ---------------------------------------------------------------


def test_a_round_tells_what_it_did_to_the_data():
    shown = _watched(_ring, 3, _x)
    assert [frame.phase for frame in shown.frames] == [
        *["reduce-scatter"] * 2,
        *["all-gather"] * 2,
        "",
    ]
    assert [frame.update for frame in shown.frames[:-1]] == [
        *[BufferUpdate.ADDS] * 2,
        *[BufferUpdate.REPLACES] * 2,
    ]
    assert shown.frames[0].caption == "Each rank adds what it receives to its own."
    # rank r has added to chunk r − 2
    assert shown.frames[0].changed == ((1,), (2,), (0,))
    assert [arrow.enters for arrow in shown.frames[0].arrows] == [2, 0, 1]


def _rooted(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        for src in range(1, n):
            buffer = torch.empty_like(x)
            dist.recv(buffer, src)
            x += buffer
        for dst in range(1, n):
            dist.send(x, dst)
    else:
        dist.send(x, 0)
        dist.recv(x, 0)


def test_phases_are_named_by_their_data():
    shown = _watched(_rooted, 3, _x)
    phases = [frame.phase for frame in shown.frames]
    assert phases == ["reduce", "reduce", "broadcast", "broadcast", ""]
    assert shown.frames[3].caption == "Rank 2 replaces its own data with what it receives."


def test_a_ring_that_adds_the_wrong_chunk_has_no_phase():
    def answer(x):
        rank, n = dist.get_rank(), dist.get_world_size()
        chunks = list(x.tensor_split(n))
        for step in range(1, n):
            request = dist.isend(chunks[(rank - step) % n], (rank + 1) % n)
            buffer = torch.empty_like(chunks[0])
            dist.recv(buffer, (rank - 1) % n)
            request.wait()
            chunks[rank] += buffer
        for step in range(1, n):
            request = dist.isend(chunks[(rank - step + 1) % n], (rank + 1) % n)
            dist.recv(chunks[(rank - step) % n], (rank - 1) % n)
            request.wait()

    shown = _watched(answer, 3, _x)
    assert shown.frames[0].update is BufferUpdate.ADDS
    assert {frame.phase for frame in shown.frames} == {""}


def _gathered_all(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for step in range(1, n):
        request = dist.isend(parts[(rank - step + 1) % n], (rank + 1) % n)
        dist.recv(parts[(rank - step) % n], (rank - 1) % n)
        request.wait()
    return parts


def test_one_phase_needs_no_name_and_an_empty_cell_is_filled():
    shown = _watched(_gathered_all, 3, lambda rank, n: tagged(rank, [0]))
    assert [frame.caption for frame in shown.frames] == [
        *["Each rank stores what it receives."] * 2,
        "",
    ]
    assert {frame.phase for frame in shown.frames} == {""}


def test_memory_that_nobody_has_written_holds_nothing():
    shown = replay(lambda x: torch.empty(4), 1, torch.ones(4))
    assert [cell.text for cell in shown.film.frames[-1].cells[0]] == [*["1"] * 4, *[""] * 4]


def _carried(x):
    """Reduce-scatter whose sums travel in a tensor of their own."""
    rank, n = dist.get_rank(), dist.get_world_size()
    carry = x[(rank - 1) % n : (rank - 1) % n + 1].clone()
    for step in range(1, n):
        request = dist.isend(carry, (rank + 1) % n)
        buffer = torch.empty_like(carry)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        place = (rank - step - 1) % n
        carry = x[place : place + 1] + buffer
    return carry


def test_memory_that_is_no_argument_is_shown_where_messages_end_in_it():
    shown = _watched(_carried, 3, _x)
    assert shown.headings == (("x", 3), ("result", 1), ("buffer", 1))
    assert [frame.caption for frame in shown.frames[:-1]] == [
        "Each rank adds what it receives to its own."
    ] * 2
    assert [arrow.leaves for arrow in shown.frames[0].arrows] == [4] * 3
    assert [column[4].text for column in shown.frames[1].cells] == ["A1+C1", "A2+B2", "B0+C0"]


@pytest.mark.parametrize(
    "update, text",
    [
        (lambda own, came: own + came, "Rank 1 adds what it receives to its own."),
        (lambda own, came: came, "Rank 1 replaces its own data with what it receives."),
        (lambda own, came: own * came, "Rank 1 computes something new from what it receives."),
        (lambda own, came: own, "Rank 1 stores what it receives."),  # in the buffer
    ],
)
def test_plain_numbers_tell_it_too(update, text):
    def answer(x):
        if dist.get_rank() == 0:
            dist.send(x, 1)
        else:
            x *= 3  # so that ranks differ
            buffer = torch.zeros_like(x)
            dist.recv(buffer, 0)
            x.copy_(update(x, buffer))

    shown = replay(answer, 2, torch.tensor([1.5, 3.0]))
    assert shown.film.headings[0] == ("x", 2)
    assert shown.film.frames[0].caption == text


def test_a_long_tensor_is_cut_and_an_enormous_one_left_out():
    def answer(x):
        if dist.get_rank() == 0:
            dist.send(x, 1)
        else:
            dist.recv(x, 0)

    shown = _watched(answer, 2, lambda rank, n: tagged(rank, range(40)))
    assert [len(column) for column in shown.frames[0].cells] == [32, 32]
    shown = _watched(answer, 2, lambda rank, n: torch.zeros(1000))
    assert [len(column) for column in shown.frames[0].cells] == [0, 0]
    assert shown.frames[0].arrows[0].content.text == "data"


def test_a_run_that_is_not_watched_costs_and_shows_nothing():
    outcome = play(lambda: dist.get_rank(), 2)
    assert outcome.trace.tensor_snapshots == ((), ())


# The call. ------------------------------------------------------------------------


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.recv(x, src)


def test_an_exercise_needs_no_arguments(capsys):
    shown = replay(broadcast, 3)
    assert repr(shown).splitlines()[0] == "round 1:  1→0 B0 B1"
    assert capsys.readouterr().out == repr(shown) + "\n"


# Beside a right run. ---------------------------------------------------------------


def test_a_right_answer_of_another_kind_ends_with_the_same_data():
    shown = replay(broadcast, 4)
    assert repr(shown).endswith("\nEvery round is as in the course's solution.")

    def tree_broadcast(x, src):
        broadcast(x, src)

    shown = replay(tree_broadcast, 4)
    assert repr(shown).endswith(
        " Both end with the same data. Yours takes 3 rounds, the course's solution 2."
    )

    def backwards(x, src):
        if dist.get_rank() == src:
            for dst in reversed(range(dist.get_world_size())):
                if dst != src:
                    dist.send(x, dst)
        else:
            dist.recv(x, src)

    backwards.__name__ = "broadcast"
    shown = replay(backwards, 4)
    assert repr(shown).endswith(
        "\nThe first difference is in round 1: in the solution rank 1 sends B0 B1 to rank 0,"
        " here it does not. Both end with the same data."
    )
    assert repr(replay(backwards, 4, beside=False)) in repr(shown)
    assert "solution" not in repr(replay(backwards, 4, beside=False))


def broadcast_that_doubles():
    """A broadcast in which rank 2 doubles what it receives."""

    def broadcast(x, src):
        if dist.get_rank() == src:
            for dst in range(dist.get_world_size()):
                if dst != src:
                    dist.send(x, dst)
        else:
            dist.recv(x, src)
            if dist.get_rank() == 2:
                x += x

    return broadcast


def test_the_first_difference_is_told_and_marked():
    broadcast = broadcast_that_doubles()
    shown = replay(broadcast, 4)
    assert repr(shown).splitlines()[-1] == (
        "The first difference is in round 2: afterwards rank 2's x[0] holds B0+B0, in the solution"
        " B0. It stays so to the end."
    )
    text = html.unescape(re.search(r'data-replay="([^"]*)"', shown._repr_html_())[1])
    own, reference = json.loads(text)
    assert (own["name"], reference["name"]) == ("yours", "the course's solution")
    assert own["difference"] == {"step": 2, "cells": [[2, 0], [2, 1]], "arrows": []}
    assert own["note"] == repr(shown).splitlines()[-1]


def test_a_result_is_compared_at_the_end_only():
    def all_gather(x):
        rank, n = dist.get_rank(), dist.get_world_size()
        parts = [torch.empty_like(x) for _ in range(n)]
        parts[rank].copy_(x)
        for step in range(1, n):
            request = dist.isend(x, (rank + step) % n)
            dist.recv(parts[(rank - step) % n], (rank - step) % n)
            request.wait()
        return [part.clone() for part in reversed(parts)]

    assert repr(replay(all_gather, 3)).splitlines()[-1] == (
        "Every message is as in the course's solution, but at the end rank 0's result[0] holds C0,"
        " in the solution A0."
    )


def test_a_message_with_other_contents_and_a_missing_result_are_told():
    def shift(x, k):
        rank, n = dist.get_rank(), dist.get_world_size()
        request = dist.isend(x + x, (rank + k) % n)
        y = torch.empty_like(x)
        dist.recv(y, (rank - k) % n)
        request.wait()

    assert repr(replay(shift, 2)).splitlines()[-1] == (
        "The first difference is in round 1: rank 0 sends A0+A0 to rank 1, in the solution A0."
        " It ends with other data: rank 0's result[0] holds nothing, in the solution B0."
    )


def _texts_of(image):
    return re.findall(r"<text[^>]*>([^<]*)</text>", unquote(image))


def test_a_wrong_cell_stands_red_beside_the_right_value_with_the_message_that_brought_it():
    broadcast = broadcast_that_doubles()
    shown = replay(broadcast, 4)
    picture = verdict_strip(shown.film, shown.reference)
    assert "The first difference is in round 2" in html.unescape(picture)
    assert _texts_of(picture) == [
        *("after round 2 of 3", "rank 1", "B0", "B1", "rank 2", "should be"),
        *("B0+B0", "B0", "✗", "B1+B1", "B1", "✗"),
        f"B0 B1, line {line_in(broadcast, 'dist.send')}",
    ]
    assert picture in shown._repr_html_()
    # a right answer has none, whatever way it takes
    assert verdict_strip(shown.reference, shown.reference) == ""


def test_a_message_that_carries_the_wrong_data_says_what_it_should():
    def shift(x, k):
        rank, n = dist.get_rank(), dist.get_world_size()
        request = dist.isend(x + x, (rank + k) % n)
        y = torch.empty_like(x)
        dist.recv(y, (rank - k) % n)
        request.wait()
        return y

    shown = replay(shift, 3)
    line = line_in(shift, "dist.isend")
    texts = _texts_of(verdict_strip(shown.film, shown.reference))
    assert f"A0+A0, line {line}, should be A0" in texts


def test_a_wrong_answer_that_goes_another_way_is_shown_at_its_end():
    def broadcast(x, src):  # the last rank is told first, and the first one nothing new
        if dist.get_rank() == src:
            for dst in reversed(range(dist.get_world_size())):
                if dst != src:
                    dist.send(x if dst else x + x, dst)
        else:
            dist.recv(x, src)

    shown = replay(broadcast, 3)
    texts = _texts_of(verdict_strip(shown.film, shown.reference))
    assert texts[0] == "at the end"
    assert texts[texts.index("B0+B0") + 1] == "B0"
    assert texts.count("✗") == 2


# Two functions on one clock. --------------------------------------------------------


def flat(x):
    if dist.get_rank() == 0:
        for dst in range(1, dist.get_world_size()):
            dist.send(x, dst)
    else:
        dist.recv(x, 0)


def tree(x):
    rank, n, step = dist.get_rank(), dist.get_world_size(), 1
    while step < n:
        if rank < step and rank + step < n:
            dist.send(x, rank + step)
        elif step <= rank < 2 * step:
            dist.recv(x, rank - step)
        step *= 2


def test_two_functions_are_replayed_on_one_clock_and_the_first_one_to_end_rests():
    shown = replay(flat, 4, beside=tree)
    assert repr(shown).splitlines() == [
        "round 1:  flat  0→1 A0",
        "          tree  0→1 A0",
        "round 2:  flat  0→2 A0",
        "          tree  0→2 A0,  1→3 A0",
        "round 3:  flat  0→3 A0",
        "          tree  done after 2 rounds",
        "          flat  done after 3 rounds",
    ]
    text = shown._repr_html_()
    films = json.loads(html.unescape(re.search(r'data-replay="([^"]*)"', text)[1]))
    assert [(film["name"], len(film["frames"])) for film in films] == [("flat", 4), ("tree", 3)]
    assert html.escape(repr(shown)) in text
    assert still(shown.film, shown.beside).count("<img") == 2


def test_two_functions_get_the_data_of_the_one_that_is_an_exercise():
    def tree_broadcast(x, src):
        tree(x)

    shown = replay(flat, 4, beside=tree_broadcast)
    assert repr(shown).splitlines()[:2] == [
        "round 1:  flat            0→1 A0",
        "          tree_broadcast  0→1 A0",
    ]


def test_two_finished_runs_are_replayed_on_one_clock():
    runs = [run(function, 4, torch.ones(1)) for function in (flat, tree)]
    assert "a run (second)  done after 2 rounds" in repr(replay(runs[0], beside=runs[1]))


def needs_more(x, y):
    pass


def test_what_cannot_stand_beside_another_is_said():
    one, other = run(flat, 2, torch.ones(1)), run(flat, 3, torch.ones(1))
    for call, text in (
        (lambda: replay(one, beside=other), "as many ranks, not 2 and 3"),
        (lambda: replay(one, beside=flat), "beside a run stands another run"),
        (lambda: replay(flat, 2, beside=one), "beside a function stands another function"),
        (lambda: replay(flat, 2, beside=needs_more), "the same data, x, but needs_more needs y"),
    ):
        with pytest.raises(RequestError, match=text):
            call()


def test_sixteen_ranks_are_replayed_by_name():
    shown = replay(_named("ring_all_reduce", lambda x, op: _ring(x)), 16)
    assert shown.film.rounds == 30
    assert shown.reference is None
    assert {cell.text for column in shown.film.frames[-1].cells for cell in column} == {
        f"A…R{i}" for i in range(16)
    }


def _named(name, function):
    function.__name__ = name
    return function


# A run that hangs. ------------------------------------------------------------------


def test_a_run_that_hangs_is_shown_beside_a_right_one_up_to_where_it_stands_still():
    def broadcast(x, src):  # forgets the last rank
        if dist.get_rank() == src:
            for dst in range(dist.get_world_size() - 1):
                if dst != src:
                    dist.send(x, dst)
        else:
            dist.recv(x, src)

    shown = replay(broadcast, 4)
    line = line_in(broadcast, "dist.recv")
    assert repr(shown).splitlines() == [
        "round 1:  1→0 B0 B1",
        "round 2:  1→2 B0 B1",
        *(f"rank {rank} ends with  B0 B1" for rank in range(3)),
        f"rank 3 waits to receive from rank 1 at line {line}, and holds  D0 D1",
        "The first difference is in round 3: in the solution rank 1 sends B0 B1 to rank 3, here it"
        " does not. It never ends: rank 3 goes no further.",
    ]
    text = html.unescape(re.search(r'data-replay="([^"]*)"', shown._repr_html_())[1])
    own, reference = json.loads(text)
    says = f"waits to receive from rank 1 at line {line}"
    assert own["halts"]["3"] == ["waits", "for 1", says, "waits"]
    assert own["halts"]["1"] == ["has", "returned", "has returned", "ended"]
    assert own["wires"] == [[3, 1, "waits", 0, 0.25, False]]
    assert own["halt"] == f"It hangs here: rank 3 {says}; rank 1 has returned."
    assert own["difference"]["step"] == reference["difference"]["step"] == 3
    assert "halt" not in reference
    assert "where it hangs</text>" in shown.picture
    assert ">for 1</text>" in shown.picture


def test_a_run_that_hangs_although_every_message_is_right_says_so():
    def broadcast(x, src):  # waits for one more
        if dist.get_rank() == src:
            for dst in range(dist.get_world_size()):
                if dst != src:
                    dist.send(x, dst)
        else:
            dist.recv(x, src)
        if dist.get_rank() == 2:
            dist.recv(torch.empty(2))

    shown = replay(broadcast, 4)
    assert repr(shown).endswith(
        "\nEvery message is as in the course's solution. It never ends: rank 2 goes no further."
    )
    assert shown.film.halts[2].label == ("waits", "for any")


def test_a_run_that_hangs_needs_no_message_and_no_reference():
    shown = replay(hangs, 2, torch.ones(1))
    line = line_in(hangs, "dist.recv")
    assert repr(shown).splitlines() == [
        f"rank {rank} waits to receive from rank {1 - rank} at line {line}, and holds  1"
        for rank in range(2)
    ]
    again = replay(run(hangs, 2, torch.ones(1), may_fail=True))
    assert again.film.halt == shown.film.halt != ""


def test_of_many_ranks_that_hang_a_sentence_names_the_numbers():
    shown = replay(hangs_all, 6)
    assert shown.film.halt == "It hangs here: ranks 0, 1, 2, 3, 4 and 5 go no further."
    assert {halt.label for halt in shown.film.halts.values()} >= {("waits", "for 1")}


def one_leaves():
    if dist.get_rank() != 2:
        dist.all_reduce(torch.ones(1))


def test_ranks_that_wait_look_as_in_graphs_and_the_one_that_has_returned_is_grey():
    shown = replay(one_leaves, 4).film
    assert [halt.standing for _, halt in sorted(shown.halts.items())] == [
        *(Standing.WAITS, Standing.WAITS, Standing.ENDED, Standing.WAITS)
    ]
    assert shown.stuck == [0, 1, 3]
    assert shown.halt == "It hangs here: ranks 0, 1 and 3 go no further; rank 2 has returned."
    assert shown.table().splitlines()[2] == "rank 2 has returned"
    assert {(wire.source, wire.destination) for wire in wires(shown)} == {(0, 2), (1, 2), (3, 2)}
    picture = Replay(shown).picture
    assert picture.count(f"fill='{Standing.WAITS.ground[0]}'") == 3 + 1  # and in the style
    assert picture.count("stroke-dasharray='5 3'") == 3


def two_leave(x):
    rank = dist.get_rank()
    if rank == 0:
        for peer in range(1, 5):
            dist.send(x, peer)
    else:
        dist.recv(x, 0)
    if rank not in (1, 3):
        dist.all_reduce(x)


def test_of_several_ranks_that_have_returned_one_sentence_tells():
    shown = replay(two_leave, 5, torch.ones(1))
    assert shown.film.halt == (
        "It hangs here: ranks 0, 2 and 4 go no further; ranks 1 and 3 have returned."
    )
    # its rounds are as high as those of a run that ends; only the last picture is higher
    tops = re.findall(r"translate\(12 (\d+)\)", shown.picture)
    ends = dataclasses.replace(shown.film, halts={}, cycle=())
    assert tops == re.findall(r"translate\(12 (\d+)\)", Replay(ends).picture)


def test_wires_to_one_rank_share_a_lane_and_those_of_a_cycle_have_their_own():
    shown = replay(one_leaves, 6).film
    far = {wire.source: wire for wire in wires(shown) if wire.lane is not None}
    assert {wire.lane for wire in far.values()} == {0}
    # from 4, the wire of 5 goes the rest of the way
    assert {source for source, wire in far.items() if wire.joins} == {4}
    around = replay(hangs_all, 4).film
    assert {halt.standing for halt in around.halts.values()} == {Standing.CYCLE}
    assert [wire.in_cycle for wire in wires(around)] == [True] * 4


def test_at_a_time_limit_the_ranks_that_had_not_ended_are_named():
    spans = (CallSpan(1, 2, "returned"), CallSpan(1), CallSpan())
    trace = Trace(((),) * 3, call_spans=spans)
    shown = film(trace, "f", tags=False, failure=Failure(Diagnosis.TIMEOUT, "too long"))
    assert shown.table() == "rank 1 had not ended when its time was over"
    other = film(trace, "f", tags=False, failure=Failure(Diagnosis.EXCEPTION, "raised"))
    assert other.table() == "no messages"


def hangs_all():
    dist.recv(torch.ones(1), (dist.get_rank() + 1) % dist.get_world_size())


def pass_on(x):
    other = 1 - dist.get_rank()
    if other:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
    return x


def test_any_function_is_replayed_with_its_numbers():
    assert repr(replay(pass_on, 2, torch.tensor([1.5, 2.0]))).startswith("round 1:  0→1 1.5 2")


def test_a_finished_run_shows_its_messages():
    shown = replay(run(pass_on, 2, torch.ones(3)))
    assert repr(shown) == "round 1:  0→1 data"


def raises():
    raise ValueError("no")


def hangs(x):
    dist.recv(x, 1 - dist.get_rank())


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((pass_on,), RequestError, "on how many ranks"),
        ((pass_on, 0), RequestError, "1 to 64 ranks"),
        ((pass_on, 17, torch.ones(1)), RequestError, r"up to 16, as in replay\(pass_on, 16\)"),
        ((3, 2), RequestError, "a function or a run"),
        ((raises, 2), RunFailed, "ValueError: no"),
    ],
)
def test_what_cannot_be_replayed_is_said(arguments, error, text):
    with pytest.raises(error, match=text):
        replay(*arguments)


# What is shown. -------------------------------------------------------------------


@pytest.fixture(scope="module")
def ring():
    return _watched(_ring, 8, lambda rank, n: tagged(rank, range(16)))


def test_the_page_holds_all_data_and_asks_nobody(ring):
    text = player(ring)
    (data,) = json.loads(html.unescape(re.search(r'data-replay="([^"]*)"', text)[1]))
    assert data["ranks"] == 8
    assert len(data["frames"]) == 15
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "<pre>reduce-scatter phase: " in text
    assert replay_page(ring).startswith("<!doctype html>")
    assert len(text) < 100_000


def test_what_a_student_wrote_cannot_leave_its_place(ring):
    evil = dataclasses.replace(ring, title='"><script>alert(1)</script>')
    assert "<script>alert" not in replay_page(evil)


def test_messages_that_pass_over_ranks_have_a_lane_each():
    picture = Replay(_watched(tree, 8, lambda rank, n: tagged(rank, [0]))).picture
    last = picture.split("round 3 of 3")[1].split("the end")[0]
    heights = re.findall(r"'M[^V']*V(\d+)H", last)
    assert len(heights) == len(set(heights)) == 4


def test_the_picture_is_folded_away_and_told_in_words(ring):
    shown = still(ring)
    assert shown.startswith("<details><summary>The first 4 rounds and the end in one picture")
    assert 'alt="Every round as a picture. reduce-scatter phase: ' in shown
    picture = unquote(re.search('src="data:image/svg[+]xml,([^"]*)"', shown)[1])
    assert picture == Replay(ring).picture
    assert picture.count("<use") > 8 * 16
    assert len(shown) < 150_000


def test_a_page_is_saved(tmp_path, ring):
    Replay(ring).save(tmp_path / "ring.html")
    assert "Replay of answer on 8 ranks" in (tmp_path / "ring.html").read_text()


def test_a_function_that_is_no_exercise_needs_no_arguments():
    def once():
        x = torch.ones(1)
        if dist.get_rank() == 0:
            dist.send(x, 1)
        else:
            dist.recv(x, 0)

    assert "round 1:  0→1" in repr(replay(once, 2))
