"""Pages without a kernel and without a network: exported notebooks, saved replays."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from playwright.sync_api import Page, Route, expect

from grader import replay
from tests.browser.replays import Watched

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
    offline.goto(exported.as_uri(), wait_until="domcontentloaded")
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
    return Watched(offline, offline.locator(".gather-round-replay"))


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
            saved.button("Start").click()
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
    home.querySelector("svg").append(probe);
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
