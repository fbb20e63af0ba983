"""The course as web pages: built whole, and read in a browser from a plain web server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

from grader.core.verdict import Wait
from grader.report.graph import graph_image
from tests.browser.replays import Watched
from tests.browser.test_accessibility import findings, is_dark
from tools.site.__main__ import EDITIONS, ROOT

#: One worker has the browser.  The first of these tests waits for the site, which has 300 s.
pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.slow,
    pytest.mark.timeout(360),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.site", "--to", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    # nothing is wrong: every link and every picture leads somewhere
    assert (done.returncode, done.stderr) == (0, "")
    return target / "html"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The address of a server of files, such as GitHub's: the search fetches pages."""
    handler = partial(QuietHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing of the requests."""


@pytest.fixture
def read(page: Page, address: str):
    """Open a page of the site; an error on it fails the test."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    # formulas are set by a script from the network, which tests do without
    page.route("https://**", lambda route: route.abort())

    def open_(name: str) -> Page:
        page.goto(f"{address}/{name}")
        return page

    yield open_
    assert errors == []


def test_both_editions_have_every_chapter(site: Path) -> None:
    for edition in EDITIONS:
        chapters = {path.stem for path in (ROOT / edition).glob("[0-9][0-9]_*.ipynb")}
        assert chapters
        assert chapters <= {path.stem for path in (site / edition).glob("*.html")}


def test_a_replay_plays_without_a_kernel(read) -> None:
    page = read("solutions/11_ring_all_reduce.html")
    Watched(page, page.locator(".gather-round-replay").first).is_stepped()


def test_a_switch_leads_to_the_other_edition(read) -> None:
    page = read("solutions/02_broadcast.html")
    solution = page.locator("pre", has_text="dist.send").first
    expect(solution).to_be_visible()
    page.get_by_role("navigation", name="Edition").get_by_role("link", name="Student").click()
    expect(page).to_have_url(re.compile(r"notebooks/02_broadcast\.html"))
    expect(page.locator("pre", has_text="raise NotImplementedError").first).to_be_visible()
    page.get_by_role("navigation", name="Edition").get_by_role("link", name="Solved").click()
    expect(page).to_have_url(re.compile(r"solutions/02_broadcast\.html"))


def test_what_is_searched_is_found(read) -> None:
    page = read("search.html?q=rendezvous")
    expect(page.locator("#search-results li").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 900, 1440])
def test_a_chapter_fits_the_window_in_both_themes(read, page: Page, scheme, width) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    read("solutions/11_ring_all_reduce.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_paper_there_is_the_chapter_alone(read, page: Page) -> None:
    read("solutions/02_broadcast.html")
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Edition")).to_be_hidden()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "name", ["index", "solutions/index", "notebooks/02_broadcast", "solutions/02_broadcast"]
)
def test_axe_finds_nothing(read, page: Page, scheme: str, name: str) -> None:
    page.emulate_media(color_scheme=scheme)
    read(f"{name}.html")
    assert findings(page, "article") == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_follow_the_theme_that_the_reader_chose(read, page: Page, theme: str) -> None:
    # the system says the opposite
    page.emulate_media(color_scheme="dark" if theme == "light" else "light")
    read("solutions/02_broadcast.html")
    page.evaluate("theme => document.body.dataset.theme = theme", theme)
    waits = (Wait(0, (1,), "waits", call="send"), Wait(1, (0,), "waits", call="send"))
    page.locator("article").evaluate(
        "(home, html) => home.insertAdjacentHTML('afterbegin', html)", graph_image(waits, (0, 1))
    )
    assert is_dark(page.get_by_role("img", name="Who waits for whom.").first) == (theme == "dark")
