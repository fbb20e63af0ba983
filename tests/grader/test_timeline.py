"""Time lines: of runs that end, and of runs that hang."""

from __future__ import annotations

import base64
import io
import os
import re
import time
from urllib.parse import unquote

import pytest
import torch
import torch.distributed as dist
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, Rectangle
from PIL import Image

from grader import mark, run, simulate, timeline
from grader.api.timeline import Timeline
from grader.report.drawing import darkened
from grader.report.looks import Standing
from grader.report.timeline import Drawing
from headcount.core.errors import RequestError
from headcount.trace.lanes import CODE, Bar, Lane, Lanes, Line, Mark, lanes
from support.worlds import line_in


def late_to_a_barrier():
    if dist.get_rank() == 2:
        time.sleep(0.2)
    dist.barrier()


def pass_on():
    rank, x = dist.get_rank(), torch.ones(1)
    if rank == 0:
        time.sleep(0.1)
        dist.send(x, 1)
    elif rank == 1:
        dist.recv(x, 0)
        request = dist.isend(x, 2)
        request.wait()
    else:
        request = dist.irecv(x, 1)
        time.sleep(0.2)
        request.wait()


def all_send_first():
    rank, n, x = dist.get_rank(), dist.get_world_size(), torch.ones(1)
    dist.send(x, (rank + 1) % n)
    dist.recv(x, (rank - 1) % n)


def _of(function, n, *arguments, **more):
    ran = run(function, n, *arguments, **more)
    return lanes(ran.trace, ran.failure)


# What ranks did. ------------------------------------------------------------------


def test_those_who_wait_for_the_late_one_are_seen_waiting():
    shown = _of(late_to_a_barrier, 3)
    late = shown.lanes[2].bars[0]
    assert late.what == CODE
    assert late.end - late.start >= 0.2e9
    for lane in shown.lanes:
        (waits,) = [bar for bar in lane.bars if bar.what == "collective"]
        assert waits.text == f"barrier (line {line_in(late_to_a_barrier, 'dist.barrier')})"
        # nobody leaves before the last has come
        assert waits.end >= late.end
        assert lane.end == "returned"
    assert shown.lines == ()
    assert not shown.hangs


def test_a_ranks_time_has_no_gap_from_entering_to_leaving():
    for lane in _of(pass_on, 3).lanes:
        assert all(a.end == b.start for a, b in zip(lane.bars, lane.bars[1:], strict=False))
        assert lane.bars[-1].end == lane.left
        total = sum(lane.seconds(what) for what in (CODE, "send", "recv", "collective"))
        assert total == pytest.approx((lane.left - lane.bars[0].start) / 1e9)


def test_messages_are_on_their_way_from_the_sender_until_the_receiver_has_them():
    ran = run(pass_on, 3)
    first, second = lanes(ran.trace).lines
    assert [(m.source, m.destination) for m in (first, second)] == [(0, 1), (1, 2)]
    assert first.start >= 0.1e9
    assert second.start >= first.end
    # rank 2 looks late, and only then sees the message complete
    assert second.end >= 0.2e9


def test_a_request_blocks_only_while_it_is_waited_for():
    shown = _of(pass_on, 3)
    own, *_ = shown.lanes[2].bars
    assert (own.what, own.end - own.start >= 0.2e9) == (CODE, True)
    (waits,) = [bar for bar in shown.lanes[2].bars if bar.what == "recv"]
    # the line of the wait; the call is listed with its own
    assert waits.text.startswith("recv from 1 (line ")
    assert shown.lanes[2].calls == (f"recv from 1 (line {line_in(pass_on, 'irecv')})",)


# Runs that did not end well. ------------------------------------------------------


def test_a_deadlock_reaches_the_end_of_the_record():
    shown = _of(all_send_first, 4, may_fail=True)
    assert shown.hangs
    line = line_in(all_send_first, "dist.send")
    for rank, lane in enumerate(shown.lanes):
        assert lane.left is None
        assert not lane.bars[-1].over
        assert lane.bars[-1].end == shown.end
        assert lane.end == f"waits forever in send to {(rank + 1) % 4} (line {line})"
    assert shown.lines == ()


def test_a_rank_that_runs_too_long_is_told_from_those_that_wait():
    def one_never_comes():
        while dist.get_rank() == 1:
            pass
        dist.all_reduce(torch.ones(1))

    shown = _of(one_never_comes, 3, seconds=1.0, may_fail=True)
    line = line_in(one_never_comes, "all_reduce")
    waits = f"still waits in all_reduce (line {line})"
    assert [lane.end for lane in shown.lanes] == [waits, "still runs", waits]
    assert shown.lanes[1].bars[-1].what == CODE
    assert all(lane.bars[-1].end == shown.end for lane in shown.lanes)


@pytest.mark.parametrize("how, end", [("raises", "raised"), ("dies", "its process is gone")])
def test_who_left_badly_is_named(how, end):
    def one_leaves(how):
        if dist.get_rank() == 1:
            if how == "dies":
                os._exit(1)
            raise ValueError
        dist.barrier()

    shown = _of(one_leaves, 3, how, may_fail=True)
    assert shown.lanes[1].end == end
    assert shown.lanes[1].left is not None
    assert [shown.lanes[rank].bars[-1].over for rank in (0, 2)] == [False, False]


def test_a_program_that_does_not_load_was_never_called():
    class Unloadable:
        def __reduce__(self):
            return (int, ("no number",))

    thing = Unloadable()
    shown = _of(lambda: thing, 2, may_fail=True)
    assert [lane.end for lane in shown.lanes] == ["never called"] * 2
    assert Timeline(shown).picture


# What is shown. -------------------------------------------------------------------


def test_the_text_tells_what_is_the_same_in_every_run(capsys):
    shown = timeline(run(pass_on, 3))
    send, recv, isend, irecv = (
        line_in(pass_on, text) for text in ("send(x, 1)", "recv(x, 0)", "isend", "irecv")
    )
    assert repr(shown).splitlines() == [
        f"rank 0:  send to 1 (line {send});  returned",
        f"rank 1:  recv from 0 (line {recv}), send to 2 (line {isend});  returned",
        f"rank 2:  recv from 1 (line {irecv});  returned",
    ]
    # in a script it is printed
    assert capsys.readouterr().out == repr(shown) + "\n"
    assert repr(shown) == repr(timeline(run(pass_on, 3)))


def test_calls_that_are_repeated_are_counted():
    def many():
        for _ in range(5):
            dist.barrier()

    line = line_in(many, "dist.barrier")
    assert repr(timeline(run(many, 2))).startswith(f"rank 0:  5 × barrier (line {line});  returned")


def test_a_receive_from_anybody_is_told_without_whom_it_got():
    def anybody():
        x = torch.ones(1)
        if dist.get_rank() == 0:
            for _ in range(dist.get_world_size() - 1):
                dist.recv(x)
        else:
            dist.send(x, 0)

    assert "2 × recv from any rank (line" in repr(timeline(run(anybody, 3)))


def test_a_notebook_gets_a_picture_its_words_and_a_table():
    shown = timeline(run(all_send_first, 3, may_fail=True))
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == repr(shown)
    page = bundle["text/html"]
    inside = unquote(re.search(r' src="data:image/svg[+]xml,([^"]*)"', page)[1])
    dark, light = map(base64.b64decode, re.findall(r"png;base64,([^']*)'", inside))
    assert light == bundle["image/png"] == shown.picture
    assert dark == darkened(shown.picture)
    alt = re.search(r'alt="([^"]*)"', page)[1]
    assert "Time line of 3 ranks over" in alt
    assert "then waits forever in send to 1" in alt
    assert page.count("<tr>") == 4
    # a notebook that is not trusted keeps neither of these, nor does it need them
    assert not re.search(r"<(script|svg)|https?://(?!www\.w3\.org/2000/svg)", page)


@pytest.mark.exhaustive
def test_the_picture_is_small_and_opaque():
    def chatter():
        rank, n, x = dist.get_rank(), dist.get_world_size(), torch.ones(1)
        for _ in range(20):
            request = dist.isend(x, (rank + 1) % n)
            dist.recv(torch.empty(1), (rank - 1) % n)
            request.wait()

    shown = timeline(run(chatter, 8))
    picture = Image.open(io.BytesIO(shown.picture))
    assert (picture.mode, "transparency" in picture.info) == ("P", False)
    assert len(shown.picture) < 150_000


def test_the_dark_picture_has_a_dark_ground_and_light_words():
    shown = timeline(run(lambda: dist.barrier(), 2))
    light, dark = (
        Image.open(io.BytesIO(png)).convert("L") for png in (shown.picture, darkened(shown.picture))
    )
    assert light.size == dark.size
    assert (light.getpixel((2, 2)), dark.getpixel((2, 2))) == (255, 17)
    assert light.getextrema()[0] < 60
    assert dark.getextrema()[1] > 200


def _drawn(found):
    """What a picture draws: texts with their places, and arrows with their order."""
    axes = Drawing(found).sheet.axes
    texts = {(text.get_text(), text.get_position()): text for text in axes.texts}
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    return axes, texts, arrows


def _lanes(marks=(), bars=(), lines=()):
    lane = Lane(tuple(bars), (), "returned", 100, (), tuple(marks))
    return Lanes((lane, lane), tuple(lines), 100)


def test_the_first_mark_keeps_its_name_and_those_on_top_of_it_lose_theirs():
    marks = [Mark(10, "first"), Mark(11, "second"), Mark(60, "third"), Mark(100, "at the very end")]
    axes, texts, _ = _drawn(_lanes(marks))
    named = [text for text, _ in texts]
    assert "first" in named
    assert "second" not in named
    assert {"third", "at the very end"} <= set(named)
    boxes = [text.get_window_extent() for (name, _), text in texts.items() if "rank" not in name]
    limits = axes.figure.bbox
    assert all(box.x1 <= limits.x1 for box in boxes)


def test_messages_pass_behind_labels_and_bars():
    bar = Bar(20, 80, "recv", "recv from 0 (line 3)")
    _, texts, arrows = _drawn(_lanes([Mark(40, "here")], [bar], [Line(0, 1, 10, 90)]))
    message = min(arrows, key=lambda arrow: arrow.zorder)
    covering = [text for (name, _), text in texts.items() if name in ("here", bar.text)]
    assert len(covering) == 4
    assert all(text.zorder > message.zorder and text.get_path_effects() for text in covering)


def test_a_bar_that_did_not_end_stops_where_the_run_was_ended():
    bar = Bar(20, 100, "recv", "recv from 0 (line 3)", over=False)
    found = Lanes((Lane((bar,), (), "waits forever", None),), (), 100)
    drawing = Drawing(found)
    rights = [
        patch.get_x() + patch.get_width()
        for patch in drawing.sheet.axes.patches
        if isinstance(patch, Rectangle) and patch.get_y() > 0.5
    ]
    assert max(rights) == pytest.approx(drawing.x(100))


def _colours(lanes):
    """The colours of boxes and of dashed arrows."""
    patches = Drawing(lanes).sheet.axes.patches
    boxes = [patch for patch in patches if isinstance(patch, Rectangle)]
    wires = [
        patch
        for patch in patches
        if isinstance(patch, FancyArrowPatch) and patch.get_linestyle() in ("--", "dashed")
    ]
    return tuple([to_hex(one.get_edgecolor()) for one in found] for found in (boxes, wires))


def test_a_deadlock_looks_as_in_its_graph():
    def one_leaves():
        if dist.get_rank() != 2:
            dist.all_reduce(torch.ones(1))

    boxes, wires = _colours(timeline(run(one_leaves, 3, may_fail=True)).lanes)
    waits, cycle, ended = (
        look.line[0] for look in (Standing.WAITS, Standing.CYCLE, Standing.ENDED)
    )
    # two that wait and their entry in the legend, and the rank that they wait for
    assert (boxes.count(waits), boxes.count(ended), boxes.count(cycle)) == (3, 1, 0)
    assert wires == [waits] * 3
    boxes, wires = _colours(timeline(run(all_send_first, 2, may_fail=True)).lanes)
    assert (boxes.count(cycle), boxes.count(waits)) == (3, 0)
    assert wires == [cycle] * 3


def test_a_page_is_saved(tmp_path):
    timeline(run(late_to_a_barrier, 3)).save(tmp_path / "late.html")
    assert "<h1>Time line of 3 ranks</h1>" in (tmp_path / "late.html").read_text()


def test_a_record_alone_and_a_rank_alone_are_shown():
    assert repr(timeline(run(lambda: None, 1).trace)) == "rank 0:  no communication;  returned"


def test_what_has_no_time_line_is_said():
    with pytest.raises(RequestError, match=r"timeline takes what run returns: write timeline"):
        timeline(pass_on)


# Marks, and collectives in flight. ------------------------------------------------


def overlaps():
    """Computes while its sum is on its way, and waits afterwards."""
    x = torch.ones(4)
    mark("begins")
    request = dist.all_reduce(x, async_op=True)
    mark("computes")
    time.sleep(0.1)
    request.wait()
    mark("ends")
    dist.barrier()


def test_marks_are_kept_in_program_order_on_real_and_on_simulated_ranks():
    def answer():
        mark("before")
        if dist.get_rank() == 0:
            dist.send(torch.ones(1), 1)
        else:
            dist.recv(torch.ones(1), 0)
        mark("after")

    for trace in (run(answer, 2).trace, simulate(answer, 2, record=True).trace):
        for operations, marks in zip(trace.operations, trace.marks, strict=True):
            before, after = marks
            assert (before.text, after.text) == ("before", "after")
            assert before.time < operations[0].posted < operations[0].done < after.time


def test_a_mark_does_nothing_where_nobody_records():
    assert mark("here") is None


@pytest.mark.parametrize("text, error", [(7, TypeError), ("x" * 61, ValueError)])
def test_a_mark_is_a_short_text(text, error):
    with pytest.raises(error, match="mark takes"):
        mark(text)


def test_a_collective_is_in_flight_until_it_is_waited_for():
    (first, _), end = _of(overlaps, 2).lanes, "returned"
    (flight,) = first.flights
    assert flight.text.startswith("all_reduce (line")
    assert 0.1 <= first.in_flight < first.seconds(CODE) + first.seconds("collective")
    # the sleep, while the sum was on its way
    assert 0.1 <= first.hidden <= first.in_flight
    assert first.end == end


def test_what_is_waited_for_at_once_is_not_in_flight():
    def answer():
        dist.all_reduce(torch.ones(1))
        dist.barrier()

    for lane in _of(answer, 2).lanes:
        assert (lane.flights, lane.in_flight, lane.hidden) == ((), 0, 0)


def test_a_time_line_is_cut_at_marks():
    ran = run(overlaps, 2)
    whole, part = timeline(ran), timeline(ran, since="begins", until="ends")
    assert part.lanes.end < whole.lanes.end
    for lane in part.lanes.lanes:
        assert [mark.text for mark in lane.marks] == ["begins", "computes", "ends"]
        assert all(0 <= bar.start <= bar.end <= part.lanes.end for bar in lane.bars)
    assert "computes at" in part.in_words()
    assert "of it in its own code" in part.in_words()


@pytest.mark.parametrize(
    "since, until, text",
    [
        ("begins", "never", "marks are 'begins', 'computes', 'ends'"),
        ("ends", "begins", "does not come after 'ends'"),
    ],
)
def test_a_time_line_cannot_be_cut_where_nobody_was(since, until, text):
    with pytest.raises(RequestError, match=text):
        timeline(run(overlaps, 2), since=since, until=until)


def test_without_marks_it_is_said_how_to_make_one():
    with pytest.raises(RequestError, match=r"call mark\('here'\) in the function"):
        timeline(run(pass_on, 3), since="here")
