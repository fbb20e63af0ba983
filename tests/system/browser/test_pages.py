"""Pages without a kernel and without a network: exported notebooks, saved replays."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from playwright.sync_api import Page, Route, expect

from grader import replay, run, timeline
from tests.system.browser.replays import Watched

#: One worker has the browser and the server.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]


def shift_twice(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    for _ in range(2):
        request = dist.isend(x, (rank + 1) % n)
        y = torch.empty_like(x)
        dist.recv(y, (rank - 1) % n)
        request.wait()
        x = y


@pytest.fixture
def offline(page: Page) -> Page:
    """A page that reaches nothing but this machine's files."""

    def refuse(route: Route) -> None:
        route.abort()

    page.route("http*://**", refuse)
    return page


def test_an_exported_chapter_still_steps(exported: Path, offline: Page) -> None:
    # until its pictures have come, or not, what is below them moves away from a click
    offline.goto(exported.as_uri(), wait_until="load")
    Watched(offline, offline.locator(".gather-round-replay").first).is_stepped()


def test_a_saved_replay_steps(offline: Page, tmp_path: Path) -> None:
    target = tmp_path / "replay.html"
    replay(shift_twice, 3, torch.ones(2)).save(target)
    offline.goto(target.as_uri())
    Watched(offline, offline.locator(".gather-round-replay")).is_stepped()


@pytest.fixture
def saved(offline: Page, tmp_path: Path) -> Watched:
    target = tmp_path / "replay.html"
    replay(shift_twice, 3, torch.ones(2)).save(target)
    offline.goto(target.as_uri())
    watched = Watched(offline, offline.locator(".gather-round-replay"))
    # so that it does not play by itself
    watched.button("First").click()
    return watched


#: Where what travels is, in every frame in which it is drawn, and when a round is announced.
WATCH = """() => {
    window.places = [];
    window.rounds = [];
    const home = document.querySelector(".gather-round-replay");
    const look = (now) => {
        const chunk = home.querySelector(".gr-chunk");
        if (chunk) window.places.push(chunk.getAttribute("transform"));
        const text = home.querySelector(".gr-caption strong").textContent;
        if (window.rounds.at(-1)?.[0] !== text) window.rounds.push([text, now]);
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""


def test_messages_travel_along_their_arrows(saved: Watched, offline: Page) -> None:
    offline.evaluate(WATCH)
    saved.button("Next").click()
    saved.rests()
    assert len(set(offline.evaluate("places"))) > 2


def written(tmp_path: Path, *call: Any, **more: Any) -> str:
    target = tmp_path / "replay.html"
    replay(*call, **more).save(target)
    return target.as_uri()


def test_it_plays_once_by_itself_when_it_comes_into_sight(offline: Page, tmp_path: Path) -> None:
    offline.goto(written(tmp_path, shift_twice, 3, torch.ones(2)))
    watched = Watched(offline, offline.locator(".gather-round-replay"))
    watched.says("Round 2 of 2, the end")
    expect(watched.button("Play")).to_be_visible()
    watched.button("First").click()
    # not again, although it comes into sight again
    offline.evaluate("document.body.style.paddingTop = '3000px'")
    offline.evaluate("scrollTo(0, 0)")
    offline.evaluate("scrollTo(0, 3000)")
    watched.says("Before round 1 of 2")


def test_it_waits_out_of_sight_and_for_readers_who_ask_for_less_motion(
    offline: Page, tmp_path: Path
) -> None:
    address = written(tmp_path, shift_twice, 3, torch.ones(2))
    offline.add_init_script(
        "addEventListener('DOMContentLoaded', () => { document.body.style.paddingTop = '3000px'; })"
    )
    offline.goto(address)
    watched = Watched(offline, offline.locator(".gather-round-replay"))
    watched.says("Before round 1 of 2")
    offline.emulate_media(reduced_motion="reduce")
    offline.reload()
    offline.evaluate("scrollTo(0, 3000)")
    watched.says("Before round 1 of 2")
    offline.emulate_media(reduced_motion="no-preference")
    offline.reload()
    offline.evaluate("scrollTo(0, 3000)")
    watched.says("Round 2 of 2, the end")


def both_send(x):
    dist.send(x, 1 - dist.get_rank())


def test_a_deadlock_without_rounds_has_nothing_to_press(offline: Page, tmp_path: Path) -> None:
    offline.goto(written(tmp_path, both_send, 2, torch.ones(2)))
    place = offline.locator(".gather-round-replay")
    expect(place.locator(".gr-caption")).to_contain_text("It hangs here: rank 0 waits to send")
    assert place.get_by_role("button").count() == place.get_by_role("slider").count() == 0
    expect(place.locator(".gr-halt.gr-cycle")).to_have_count(2)
    expect(place.locator(".gr-wire.gr-cycle")).to_have_count(2)
    expect(place.locator(".gr-legend")).to_have_text("the cycle: each waits for the next")


def one_message(x):
    if dist.get_rank() == 0:
        dist.send(x, 1)
    elif dist.get_rank() == 1:
        dist.recv(x, 0)


def test_of_two_functions_the_one_that_is_done_rests(offline: Page, tmp_path: Path) -> None:
    offline.goto(written(tmp_path, shift_twice, 3, torch.ones(2), beside=one_message))
    place = offline.locator(".gather-round-replay")
    assert place.get_by_role("slider").count() == 1
    place.get_by_role("button", name="First").click()
    for _ in range(2):
        place.get_by_role("button", name="Next").click()
    expect(place.locator(".gr-caption")).to_have_text("Round 2 of 2, the end")
    long, short = place.locator(".gr-film").all()
    expect(long).to_contain_text("shift_twice✓ done after 2 rounds")
    expect(short).to_contain_text("one_message✓ done after 1 round")
    expect(short.locator("svg.gr-rests")).to_have_count(1)


def test_a_packet_keeps_its_label_in_sight_at_the_edge(saved: Watched, offline: Page) -> None:
    offline.evaluate(WATCH)
    saved.button("Next").click()
    saved.rests()
    wide = float(saved.place.locator(".gr-stage svg").get_attribute("width") or 0)
    places = [float(at[len("translate(") :].split(",")[0]) for at in offline.evaluate("places")]
    assert places
    assert all(7 < at < wide - 7 for at in places)


def tree(x):
    rank, n, far = dist.get_rank(), dist.get_world_size(), 1
    while far < n:
        if rank < far:
            dist.send(x, rank + far)
        elif rank < 2 * far:
            dist.recv(x, rank - far)
        far *= 2


#: Where wires go up and down between ranks.
UPRIGHT = """lines => lines.map(line => {
    const turns = line.getAttribute("d").matchAll(/Q([\\d.]+),[\\d.]+ \\1,/g);
    return [...turns].map(found => Number(found[1]));
})"""


@pytest.mark.parametrize("wide", [390, 1280])
@pytest.mark.parametrize("ranks", [8, 16])
def test_wires_of_a_tree_are_told_apart(
    offline: Page, tmp_path: Path, ranks: int, wide: int
) -> None:
    offline.set_viewport_size({"width": wide, "height": 800})
    offline.goto(written(tmp_path, tree, ranks))
    watched = Watched(offline, offline.locator(".gather-round-replay"))
    watched.button("Last").click()
    watched.rests()
    found = watched.place.locator(".gr-arrow .gr-line").evaluate_all(UPRIGHT)
    assert [len(of) for of in found] == [2] * (ranks // 2)
    places = sorted(x for of in found for x in of)
    assert min(b - a for a, b in itertools.pairwise(places)) > 4


def test_a_picture_keeps_its_words_readable_on_a_narrow_page(offline: Page, tmp_path: Path) -> None:
    target = tmp_path / "timeline.html"
    timeline(run(tree, 4, torch.ones(2))).save(target)
    offline.set_viewport_size({"width": 390, "height": 800})
    offline.goto(target.as_uri())
    picture = offline.get_by_role("img").bounding_box()
    assert picture is not None
    assert picture["width"] > 600
    assert offline.evaluate("document.documentElement.scrollWidth") == 390


def test_nothing_moves_for_readers_who_ask_for_less_motion(saved: Watched, offline: Page) -> None:
    offline.emulate_media(reduced_motion="reduce")
    offline.evaluate(WATCH)
    saved.button("Next").click()
    saved.says("Round 1 of")
    saved.place.get_by_role("combobox").select_option("fast")
    saved.button("Play").click()
    saved.says("the end")
    assert offline.evaluate("places") == []


def test_every_round_is_shown_equally_long(saved: Watched, offline: Page) -> None:
    saved.place.get_by_role("combobox").select_option("fast")
    # from here on, time passes only when the test says so
    offline.clock.install(time=0)
    offline.clock.pause_at(1000)
    saved.button("Play").click()
    saved.says("Round 1 of")
    # nothing but the clock makes it go on
    offline.clock.run_for(600)
    saved.says("Round 1 of")
    offline.clock.run_for(200)
    saved.says("Round 2 of")
    offline.clock.run_for(500)
    expect(saved.button("Pause")).to_be_visible()
    offline.clock.run_for(200)
    expect(saved.button("Play")).to_be_visible()


def test_keys_step_it_from_its_picture(saved: Watched) -> None:
    saved.is_stepped_from_its_picture()


def test_every_mark_can_be_seen_in_a_light_and_a_dark_page(saved: Watched, offline: Page) -> None:
    for scheme in ("light", "dark"):
        offline.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        for step in range(2):
            saved.button("First").click()
            for _ in range(step):
                saved.button("Next").click()
            assert offline.evaluate(FAINT_MARKS) == []


#: Lines of less than 3 : 1, and words of less than 4.5 : 1, against the ground and all data.
FAINT_MARKS = """() => {
    const home = document.querySelector(".gather-round-replay");
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const light = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => {
            const c = v / 255;
            return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const probe = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    home.querySelector(".gr-stage svg").append(probe);
    const style = (look, what) => {
        probe.setAttribute("class", look);
        return light(getComputedStyle(probe)[what]);
    };
    const ground = light(getComputedStyle(home).backgroundColor);
    const data = Array.from({ length: 8 }, (_, i) => style(`gr-data gr-data${i}`, "fill"));
    const found = [];
    const need = (name, mark, least, grounds) => grounds.forEach((of, i) => {
        if (ratio(mark, of) < least) found.push([name, i, ratio(mark, of)]);
    });
    for (const look of ["gr-cell", "gr-sent", "gr-changed", "gr-differs"]) {
        need(look, style(look, "stroke"), 3, [ground, ...data]);
    }
    need("gr-corner", style("gr-corner", "fill"), 3, [ground, ...data]);
    need("gr-line", style("gr-line", "stroke"), 3, [ground]);
    need("gr-head", style("gr-head", "fill"), 3, [ground]);
    need("gr-empty", style("gr-empty", "stroke"), 3, [ground]);
    probe.remove();
    for (const text of home.querySelectorAll("svg text")) {
        const faint = text.classList.contains("gr-faint") || text.classList.contains("gr-rank");
        const grounds = faint ? [ground] : [ground, ...data];
        need(text.textContent, light(getComputedStyle(text).fill), 4.5, grounds);
    }
    return found;
}"""
