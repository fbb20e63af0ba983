"""The wait-for graph as a picture: of real deadlocks, and of graphs of every shape."""

from __future__ import annotations

import itertools
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from grader import check, run
from grader.report.graph import MOST_RANKS, graph_of, laid_out
from grader.report.html import failure_html
from grader.report.looks import Standing
from headcount.core.verdict import Diagnosis, Failure, Site, Wait
from support.worlds import line_in

SVG = "{http://www.w3.org/2000/svg}"


class _Images(HTMLParser):
    """The attributes of all images, where there is nothing else that could run."""

    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        assert tag in ("div", "strong", "ul", "li", "span", "table", "thead", "tbody", "tr", "th",
                       "td", "pre", "img", "b", "details", "summary", "style")  # fmt: skip
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names))
        if tag == "img":
            assert names == ["class", "alt", "style", "src"]
            self.found.append(dict(attributes))


class Picture:
    """What can be seen in the one image of some HTML."""

    def __init__(self, html):
        (image,) = _Images(html).found
        self.words = image["alt"]
        kind, comma, source = image["src"].partition(",")
        assert (kind, comma) == ("data:image/svg+xml", ",")
        self.root = ElementTree.fromstring(unquote(source))
        assert {element.tag for element in self.root.iter()} <= {
            SVG + tag for tag in ("svg", "style", "g", "rect", "path", "text")
        }
        # every colour has one that takes its place on a dark page
        style = self.root.find(SVG + "style").text
        for element in self.root.iter():
            for name in ("fill", "stroke"):
                if element.get(name, "none") != "none":
                    assert f"[{name}='{element.get(name)}']{{{name}:#" in style
        self.texts = [
            (e.text, e.get("font-weight") == "bold") for e in self.root.iter(SVG + "text")
        ]

    def bold(self, text):
        return [bold for shown, bold in self.texts if shown == text]

    def arrows(self, *, bold=False, dotted=False):
        """How many arrows there are, dashed or dotted; those of the legend do not count."""
        return sum(
            (float(path.get("stroke-width")) > 3, path.get("stroke-dasharray"))
            == (bold, "2 4" if dotted else "7 4")
            for path in self.root.find(SVG + "g").iter(SVG + "path")
            if path.get("stroke")
        )


def hung(function, n, *arguments):
    """The picture of a run that hangs."""
    return Picture(run(function, n, *arguments, may_fail=True)._repr_html_())


# Real deadlocks. ------------------------------------------------------------------


def all_send_first():
    rank, n, x = dist.get_rank(), dist.get_world_size(), torch.ones(1)
    dist.send(x, (rank + 1) % n)
    dist.recv(x, (rank - 1) % n)


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_a_cycle_is_bold_with_the_lines_on_its_arrows(n):
    picture = hung(all_send_first, n)
    send = f"send, line {line_in(all_send_first, 'dist.send')}"
    assert picture.bold(send) == [True] * n
    assert all(picture.bold(f"rank {rank}") == [True] for rank in range(n))
    assert picture.arrows(bold=True) == n
    assert picture.arrows() == picture.arrows(dotted=True) == 0
    cycle = " → ".join(str(rank % n) for rank in range(n + 1))
    assert picture.words == " ".join(
        [
            "Who waits for whom.",
            *(f"Rank {rank} waits for rank {(rank + 1) % n} ({send})." for rank in range(n)),
            f"The cycle: {cycle}.",
        ]
    )


def skipped_by_one():
    if dist.get_rank() != 2:
        dist.all_reduce(torch.ones(1))


def test_a_collective_that_one_rank_skips_points_to_it():
    picture = hung(skipped_by_one, 4)
    call = f"all_reduce, line {line_in(skipped_by_one, 'all_reduce')}"
    assert picture.bold(call) == [False] * 3
    assert picture.bold("has returned") == [True]
    assert picture.bold("waits") == [False] * 3
    assert (picture.arrows(), picture.arrows(bold=True)) == (3, 0)
    assert picture.words.endswith(f"Rank 3 waits for rank 2 ({call}). Rank 2 has returned.")


def made_by_one():
    if dist.get_rank() == 1:
        dist.all_reduce(torch.ones(1))


def test_a_collective_needs_all():
    picture = hung(made_by_one, 3)
    call = f"all_reduce, line {line_in(made_by_one, 'all_reduce')}"
    assert picture.bold(call) == picture.bold("needs all of 2") == [False]
    assert picture.arrows() == 2
    assert picture.bold("it needs all that it points to (AND)") == [False]
    assert f"Rank 1 waits for all of ranks 0 and 2 ({call})." in picture.words


def test_a_receive_from_anybody_is_dotted():
    def receives():
        dist.recv(torch.empty(1))

    picture = hung(receives, 3)
    assert picture.bold("needs any one of 2") == [False] * 3
    # two of the six are a cycle
    assert (picture.arrows(dotted=True), picture.arrows(bold=True, dotted=True)) == (4, 2)
    assert picture.bold("any one that it points to would do (OR)") == [False]
    assert "Rank 0 waits for any of ranks 1 and 2 (recv, line" in picture.words


def test_who_waits_for_a_cycle_is_not_bold():
    def answer():
        rank = dist.get_rank()
        dist.recv(torch.empty(1), {0: 1, 1: 2, 2: 1}[rank])

    picture = hung(answer, 3)
    assert (picture.arrows(), picture.arrows(bold=True)) == (1, 2)


def test_the_same_deadlock_gives_the_same_bytes():
    first, second = (run(skipped_by_one, 4, may_fail=True)._repr_html_() for _ in range(2))
    assert first == second


def test_an_exercise_that_hangs_shows_it_too(capsys):
    def broadcast(x, src):
        dist.recv(x, (dist.get_rank() + 1) % dist.get_world_size())

    checked = check(broadcast, world_sizes=[3])
    assert checked.verdict.diagnosis is Diagnosis.DEADLOCK
    assert Picture(checked._repr_html_()).arrows(bold=True) == 3
    assert "svg" not in capsys.readouterr().out


def test_nothing_else_has_such_a_picture():
    failure = Failure(Diagnosis.TIMEOUT, "too long", waits=ring(3), cycle=(0, 1, 2))
    assert _Images(failure_html(failure)).found == []


def test_ranks_look_as_in_replays_and_say_what_they_do():
    picture = hung(skipped_by_one, 3)
    boxes = picture.root.find(SVG + "g").iter(SVG + "rect")
    assert sorted(box.get("stroke") for box in boxes) == sorted(
        [Standing.WAITS.line[0]] * 2 + [Standing.ENDED.line[0]]
    )
    (wires,) = {path.get("stroke") for path in picture.root.find(SVG + "g").iter(SVG + "path")} - {
        None
    }
    assert wires == Standing.WAITS.line[0]
    cycle = hung(all_send_first, 2)
    assert {box.get("fill") for box in cycle.root.find(SVG + "g").iter(SVG + "rect")} == {
        Standing.CYCLE.ground[0]
    }


# Graphs of every shape. -----------------------------------------------------------


def ring(n):
    return tuple(Wait(r, ((r + 1) % n,), "", Site("f.py", 8), "send") for r in range(n))


def test_a_cycle_in_a_crowd_is_drawn_alone():
    crowd = [Wait(rank, (0,), "", Site("f.py", 3), "recv") for rank in range(2, 40)]
    waits = (*ring(2), *crowd)
    picture = Picture(graph_of(waits, (0, 1)).image)
    assert [text for text, _ in picture.texts if text.startswith("rank")] == ["rank 0", "rank 1"]
    assert picture.words.endswith("The cycle: 0 → 1 → 0. 38 more wait.")


@pytest.mark.parametrize("waits, cycle", [((), ()), (ring(MOST_RANKS + 1), range(MOST_RANKS + 1))])
def test_nothing_and_too_much_are_not_drawn(waits, cycle):
    assert graph_of(waits, cycle) is None


def test_a_long_call_is_cut_and_keeps_its_line():
    wait = Wait(0, (1,), "", Site(f"cell {'3' * 90}", 118), "all_gather_into_tensor")
    (text,) = [text for text, _ in Picture(graph_of([wait]).image).texts if "118" in text]
    assert text.startswith("all_")
    assert text.endswith("line 118")
    assert len(text) < 50


@st.composite
def graphs(draw):
    """Waits of some of up to seven ranks, for one or several others, and a cycle if one shows."""
    n = draw(st.integers(2, 7))
    waits = {}
    for rank in range(n):
        others = [other for other in range(n) if other != rank]
        peers = draw(st.lists(st.sampled_from(others), unique=True))
        if peers:
            waits[rank] = Wait(rank, tuple(peers), "", Site("f.py", 9), "recv", draw(st.booleans()))
    cycle, at = [], min(waits, default=0)
    while at in waits and at not in cycle:
        cycle.append(at)
        at = waits[at].peers[0]
    return tuple(waits.values()), tuple(cycle[cycle.index(at) :] if at in cycle else ())


@given(graphs())
def test_every_wait_is_an_arrow(graph):
    waits, cycle = graph
    if not waits:
        return
    picture = Picture(graph_of(waits, cycle).image)
    bold = sum(picture.arrows(bold=True, dotted=dotted) for dotted in (False, True))
    plain = sum(picture.arrows(dotted=dotted) for dotted in (False, True))
    assert bold == len(cycle)
    assert bold + plain == sum(len(wait.peers) for wait in waits)


@given(graphs())
def test_nothing_lies_on_anything(graph):
    waits, _ = graph
    edges = [(wait.rank, peer) for wait in waits for peer in wait.peers]
    if not edges:
        return
    nodes = sorted({rank for edge in edges for rank in edge})
    words = {(w.rank, w.peers[0]): (80.0, 17.0) for w in waits if len(w.peers) == 1}
    layout = laid_out(nodes, edges, (90.0, 40.0), words)
    assert not any(a.meets(b) for a, b in itertools.combinations(layout.boxes.values(), 2))
    assert not any(
        box.meets_line(*line) for line in layout.arrows.values() for box in layout.boxes.values()
    )
    for rect in (*layout.boxes.values(), *layout.words.values()):
        assert rect.width / 2 - 1e-6 <= rect.x <= layout.width - rect.width / 2 + 1e-6
        assert rect.height / 2 - 1e-6 <= rect.y <= layout.height - rect.height / 2 + 1e-6


@pytest.mark.parametrize("n", range(2, MOST_RANKS + 1))
def test_words_of_a_cycle_touch_nothing(n):
    edges = [(rank, (rank + 1) % n) for rank in range(n)]
    layout = laid_out(range(n), edges, (90.0, 40.0), dict.fromkeys(edges, (150.0, 17.0)))
    assert not any(
        word.meets(box) for word in layout.words.values() for box in layout.boxes.values()
    )
    assert not any(a.meets(b) for a, b in itertools.combinations(layout.words.values(), 2))
    assert not any(
        word.meets_line(*line) for word in layout.words.values() for line in layout.arrows.values()
    )


@given(st.text())
def test_what_a_student_named_a_cell_is_text_and_nothing_else(name):
    wait = Wait(0, (1,), "", Site(f"cell {name}", 2), "send")
    (text,) = [text for text, _ in Picture(graph_of([wait]).image).texts if "send" in text]
    assert text.endswith("line 2")


@pytest.mark.parametrize(
    "name", ["\"'><script>x()</script>", "&#x22;%22>&lt;b", "]]>\x00\ud800", "'onload='x()"]
)
def test_hostile_names_stay_inside(name):
    waits = (Wait(0, (1,), "", Site(f"cell {name}", 2), "send"), *ring(2)[1:])
    failure = Failure(Diagnosis.DEADLOCK, name, 0, None, (name,), waits=waits, cycle=(0, 1))
    html = failure_html(failure)
    assert "<script" not in html
    picture = Picture(html)
    assert len([text for text, _ in picture.texts if "send, cell" in text]) == 1
